"""Golden files of whole results: `tests/golden/<case>.md` has a result, and what each profile makes of it.

A file says in words what the case is about, gives the result under the heading `input`, and then every output under
the names of the profiles that have it in common. For a new case, write its words and its input: `--update-golden` adds
the rest.
"""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in FOLDER.iterdir())
_SECTION = re.compile(r"^## ([^\n]+)\n\n```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Case(NamedTuple):
    """One golden file."""

    name: str
    about: str
    result: dict[str, Any]
    outputs: Mapping[str, str]
    """JSON by the name of the profile."""

    def __str__(self) -> str:
        """The text of the file."""
        parts = [f"# {self.name}\n", f"{self.about}\n"]
        parts += _section("input", json.dumps(self.result, ensure_ascii=False, indent=2) + "\n")
        for names, output in _grouped(self.outputs):
            parts += _section(names, output)
        return "\n".join(parts)


def path_of(name: str, folder: Path = FOLDER) -> Path:
    return folder / f"{name}.md"


def read(name: str, folder: Path = FOLDER) -> Case:
    """The case as it is written down."""
    text = path_of(name, folder).read_text("utf-8")
    (_, given), *outputs = _SECTION.findall(text)
    about = text.partition("\n\n")[2].partition("\n\n## ")[0]
    return Case(name, about, json.loads(given), {one: output for names, output in outputs for one in names.split(", ")})


def differences(expected: Case, now: Case) -> Iterable[str]:
    """A diff for each output that is not what was written down, under its case and the profiles that have it."""
    profiles = sorted({*expected.outputs, *now.outputs})
    changes = {profile: (expected.outputs.get(profile, ""), now.outputs.get(profile, "")) for profile in profiles}
    for names, (before, after) in _grouped(changes):
        if before != after:
            title = f"{path_of(now.name).name}: {names}"
            yield from unified_diff(before.splitlines(), after.splitlines(), title, "now", lineterm="")


def _grouped(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Each value once, with the names that have it, in the order of the first of them."""
    names: dict[Any, list[str]] = {}
    for name in sorted(values):
        names.setdefault(values[name], []).append(name)
    return [(", ".join(several), value) for value, several in names.items()]


def _section(heading: str, code: str) -> list[str]:
    return [f"## {heading}\n", f"```json\n{code}```\n"]
