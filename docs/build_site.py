"""Build the documentation as a site: `python docs/build_site.py`; it fails on a link that leads nowhere.

The pages are those of the repository. Zensical renders them; its navigation, and `llms.txt` for models, come from the
tables of docs/README.md. Beside each page lies its Markdown, which `llms.txt` links to. `matrix/` has the matrix of
hosts: JSON, badges, and a table with filters.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]
from matrix_page import published  # noqa: E402 - the module beside this one, and lab

REPOSITORY = "https://github.com/mcp-multimodal-gateway/mcp-multimodal-gateway/blob/main/"
"""Where files are shown that are no pages."""

_ELSEWHERE = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "CHANGELOG.md": "changelog.md",
    "lab/README.md": "lab.md",
}
"""Pages outside docs/, and those that would be the same page there, by their place in the site."""

_LINK = re.compile(r"\]\(([^()\s]++)\)")
_ROW_LINK = re.compile(r"\[([^\]\[]++)\]\(([^()\s]++)\)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*+m")
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*+:|#")


@dataclass
class Entry:
    """A page in the navigation: its place in the site, and those below it."""

    title: str
    page: str
    about: str = ""
    below: "list[Entry]" = field(default_factory=list)


def site_pages(root: Path = ROOT) -> dict[str, str]:
    """Return the place in the site of every page, by its place in the repository; both with slashes."""
    pages = dict(_ELSEWHERE)
    for folder in ("docs", "examples"):
        for path in sorted((root / folder).rglob("*.md")):
            name = path.relative_to(root).as_posix()
            place = name.removeprefix("docs/")
            pages.setdefault(name, place.removesuffix("README.md") + "index.md" if path.name == "README.md" else place)
    return pages


def with_links(text: str, name: str, pages: dict[str, str]) -> tuple[str, set[str]]:
    """Return a page's text with links as the site has them, and the other files of the repository that it shows.

    `name` is the page's place in the repository. Code is left as it is.
    """
    shown: set[str] = set()
    here = PurePosixPath(pages[name]).parent

    def placed(link: re.Match[str]) -> str:
        target, hash_, anchor = link[1].partition("#")
        if _ABSOLUTE.match(link[1]):
            return link[0]
        file = os.path.normpath(PurePosixPath(name).parent / target)
        index = f"{file}/README.md"
        if file in pages or index in pages:
            place = pages.get(file) or pages[index]
        elif file.startswith("docs/matrix/"):
            place = file.removeprefix("docs/")
        elif PurePosixPath(file).suffix in {".png", ".svg"}:
            shown.add(file)
            place = file
        else:
            return f"]({REPOSITORY}{file}{hash_}{anchor})"
        return f"]({os.path.relpath(place, here)}{hash_}{anchor})"

    fenced = False
    lines: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(line if fenced else _LINK.sub(placed, line))
    return "\n".join(lines) + "\n", shown


def navigation(pages: dict[str, str], root: Path = ROOT) -> dict[str, list[Entry]]:
    """Return the sections of docs/README.md, each with the pages of its table."""
    sections: dict[str, list[Entry]] = {}
    for line in (root / "docs/README.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            entries = sections.setdefault(line[3:], [])
        elif line.startswith("|") and (links := _ROW_LINK.findall(line)):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            about = next((cell for cell in cells if "](" not in cell), "")
            found = [entry for link in links if (entry := _entry(*link, pages, root))]
            if found:
                first, *others = found
                first.about = about
                first.below = [*others, *first.below]
                entries.append(first)
    return sections


def _entry(title: str, target: str, pages: dict[str, str], root: Path) -> Entry | None:
    """Return the entry of a link in docs/README.md; of one that leads to no page, none."""
    place = pages.get(os.path.normpath(PurePosixPath("docs") / target.partition("#")[0]))
    if place is None:
        return None
    return Entry(title[0].upper() + title[1:], place, below=list(_folder(place, pages, root)))


def _folder(page: str, pages: dict[str, str], root: Path) -> Iterator[Entry]:
    """Yield the pages beside a folder's first page."""
    if not page.endswith("/index.md") or page.startswith("examples"):
        return
    for name, place in pages.items():
        if place != page and PurePosixPath(place).parent == PurePosixPath(page).parent:
            yield Entry(heading((root / name).read_text("utf-8")), place)


def heading(text: str) -> str:
    """Return the first heading of a page, without its markup."""
    return next(line for line in text.splitlines() if line.startswith("# "))[2:].replace("`", "")


def _in_toml(entries: list[Entry]) -> str:
    """Return entries as Zensical's `nav`."""
    parts: list[str] = []
    for entry in entries:
        below = [Entry("Overview", entry.page), *entry.below]
        value = _in_toml(below) if entry.below else json.dumps(entry.page)
        parts.append(f"{{ {json.dumps(entry.title, ensure_ascii=False)} = {value} }}")
    return f"[{', '.join(parts)}]"


def configuration(sections: dict[str, list[Entry]]) -> str:
    """Return Zensical's configuration."""
    nav = [
        '{ "mcp-gateway" = "index.md" }',
        *(f"{{ {json.dumps(name)} = {_in_toml(entries)} }}" for name, entries in sections.items()),
    ]
    features = [
        *("content.code.copy", "navigation.instant", "navigation.indexes", "navigation.path", "navigation.tabs"),
        *("navigation.top", "search.highlight", "toc.follow"),
    ]
    return (
        f'[project]\nsite_name = "mcp-gateway"\nsite_description = {json.dumps(_description())}\n'
        f'repo_url = {json.dumps(REPOSITORY.removesuffix("/blob/main/"))}\ndocs_dir = "pages"\nsite_dir = "site"\n'
        f"nav = [{', '.join(nav)}]\n[project.theme]\nfont = false\nfeatures = {json.dumps(features)}\n"
        '[[project.theme.palette]]\nmedia = "(prefers-color-scheme: light)"\nscheme = "default"\n'
        'toggle.icon = "lucide/sun"\ntoggle.name = "Dark"\n'
        '[[project.theme.palette]]\nmedia = "(prefers-color-scheme: dark)"\nscheme = "slate"\n'
        'toggle.icon = "lucide/moon"\ntoggle.name = "Light"\n'
    )


def llms_txt(sections: dict[str, list[Entry]]) -> str:
    """Return `llms.txt` (llmstxt.org): every page with what it is about, for models that look for one."""
    lines = ["# mcp-gateway", "", f"> {_description()}", "", "- [mcp-gateway](index.md): the first five minutes"]
    for name, entries in sections.items():
        lines += ["", f"## {name}", ""]
        for entry in entries:
            lines.append(f"- [{entry.title}]({entry.page})" + (f": {entry.about}" if entry.about else ""))
            lines += [f"- [{below.title}]({below.page})" for below in _all(entry.below)]
    return "\n".join(lines) + "\n"


def _all(entries: list[Entry]) -> Iterator[Entry]:
    for entry in entries:
        yield entry
        yield from _all(entry.below)


def _description() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["description"]


def build(folder: Path) -> str:
    """Build the site into `folder`, which is replaced, and return what Zensical reported.

    Raises:
        RuntimeError: a link leads nowhere, or a page cannot be rendered; with Zensical's report.
    """
    pages = site_pages()
    sections = navigation(pages)
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        texts: dict[str, str] = {}
        for name, place in pages.items():
            texts[place], shown = with_links((ROOT / name).read_text("utf-8"), name, pages)
            for file in shown:
                _write(work / "pages" / file, (ROOT / file).read_bytes())
        for place, text in texts.items():
            _write(work / "pages" / place, text.encode())
        for place, content in published().items():
            _write(work / "pages" / "matrix" / place, content)
        (work / "zensical.toml").write_text(configuration(sections), "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(work / "zensical.toml")],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        report = _COLOUR.sub("", done.stdout + done.stderr).partition("Traceback (most recent call last)")[0]
        if done.returncode:
            raise RuntimeError(report)
        for place, text in texts.items():
            _write(work / "site" / place, text.encode())
        (work / "site/llms.txt").write_text(llms_txt(sections), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(work / "site", folder)
    return report


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    try:
        build(ROOT / "site")
    except RuntimeError as error:
        sys.exit(str(error))
    print("site/index.html")
