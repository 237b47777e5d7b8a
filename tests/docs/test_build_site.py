"""The documentation as a site."""

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest

from docs import build_site

ROOT = Path(__file__).parents[2]
PAGES = build_site.site_pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    build_site.build(folder)
    return folder


def test_every_page_is_rendered_and_found_by_the_search(site: Path) -> None:
    searched = {
        entry["location"].partition("#")[0] for entry in json.loads((site / "search.json").read_text())["items"]
    }
    for place in PAGES.values():
        folder = place.removesuffix("index.md") if place.endswith("index.md") else place.removesuffix(".md") + "/"
        assert (site / folder / "index.html").exists(), place
        assert folder in searched, place


def test_every_page_can_be_reached_from_the_navigation() -> None:
    named = {"index.md", "pages.md"}
    waiting = [entry for entries in build_site.navigation(PAGES).values() for entry in entries]
    while waiting:
        entry = waiting.pop()
        named.add(entry.page)
        waiting += entry.below
    assert {place for place in PAGES.values() if not place.startswith("examples/")} <= named


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|img|iframe)[^>]*>|<link[^>]*stylesheet[^>]*>", page.read_text("utf-8"))
        assert [tag for tag in tags if re.search(r"(?:src|href)=.?https?:", tag)] == [], page


def test_the_matrix_is_published_whole_and_links_lead_to_it(site: Path) -> None:
    schema = jsonschema_rs.validator_for(json.loads((site / "matrix/schema.json").read_text("utf-8")))
    everything = json.loads((site / "matrix/all.json").read_text("utf-8"))
    schema.validate(everything)
    rows = re.findall(r"<tr [^>]*data-host", (site / "matrix/table.html").read_text("utf-8"))
    assert len(rows) == len(everything["records"])
    page = (site / "hosts/matrix/index.html").read_text("utf-8")
    links = re.findall(r'(?:href|src)="(\.\./\.\./matrix/[^"#]+)"', page)
    assert len(links) > 40
    assert [link for link in links if not (site / "hosts/matrix" / link).is_file()] == []
    assert (site / "matrix" / "../hosts/matrix/index.html").is_file()


def test_llms_txt_names_pages_that_are_there(site: Path) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    assert text.startswith("# mcp-gateway\n\n> ")
    links = re.findall(r"^- \[.+?\]\((.+?)\)", text, re.MULTILINE)
    assert len(links) > 60
    for link in links:
        assert link.startswith("https://") or (site / link).read_text("utf-8").startswith("# "), link


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"README.md": "index.md", "docs/README.md": "pages.md"}
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / "docs/README.md").write_text("# Documentation\n")
    monkeypatch.setattr(build_site, "site_pages", lambda: pages)
    monkeypatch.setattr(build_site, "navigation", lambda _pages: {})
    (tmp_path / "README.md").write_text("# One\n\n[below](#two)\n\n## Two\n\n[pages](docs/README.md)\n")
    build_site.build(tmp_path / "site")
    (tmp_path / "README.md").write_text("# One\n\n[below](#three)\n\n## Two\n")
    with pytest.raises(RuntimeError, match="three"):
        build_site.build(tmp_path / "site")


def test_links_lead_to_pages_files_and_the_repository() -> None:
    text = "[a](hosts/README.md#x) [b](../deploy/) [c](report.png) [d](#e) [f](https://x.example/y.md)\n```\n[g](h.md)\n```\n"
    found, shown = build_site.with_links(text, "docs/console.md", PAGES)
    assert found == (
        f"[a](hosts/index.md#x) [b]({build_site.REPOSITORY}deploy) [c](docs/report.png) [d](#e) "
        "[f](https://x.example/y.md)\n```\n[g](h.md)\n```\n"
    )
    assert shown == {"docs/report.png"}
