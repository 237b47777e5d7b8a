"""A profile's TOML with one fact more. What it sets is taken out of the other facts; all else stays as it is."""

import datetime
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.frameworks import LabError

_HEADER = re.compile(r"\[\[([a-z.]+)\]\]")


@dataclass(frozen=True)
class NewFact:
    """A measured fact: where it is from, the host's version, the day, and values by dotted path."""

    source: str
    host_version: str | None
    checked: datetime.date
    sets: Mapping[str, Any]

    def written(self, table: str) -> str:
        """The fact as TOML."""
        version = [f"host_version = {_value(self.host_version)}"] if self.host_version else []
        lines = [f"[[{table}]]", 'level = "measured"', f"source = {_value(self.source)}", *version]
        lines += [f"checked = {self.checked}", *(f"sets.{path} = {_value(value)}" for path, value in self.sets.items())]
        return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value in TOML, which is that in JSON for all that a profile has here; numbers with `_` between thousands."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return json.dumps(value, ensure_ascii=False)


def with_fact(text: str, fact: NewFact, variant: str | None = None) -> str:
    """Return the file with the fact, behind the other facts of the host, or of one of its variants.

    Raises:
        LabError: the file is written in another way than those of this project, or has no such variant.
    """
    blocks = _blocks(text)
    table, (first, last) = ("variant.fact", _of_variant(blocks, variant)) if variant else ("fact", (0, len(blocks)))
    behind = first
    for at in range(first, last):
        if _table(blocks[at]) == table or (at == first and not _table(blocks[at])):
            behind = at
            blocks[at] = _without(blocks[at], fact)
    blocks.insert(behind + 1, fact.written(table) + "\n")
    changed = "".join(blocks).rstrip() + "\n"
    _check(changed, fact)
    return changed


def _blocks(text: str) -> list[str]:
    """The text before the first table, and each table."""
    blocks = [""]
    for line in text.rstrip().splitlines(keepends=True):
        if _HEADER.match(line):
            blocks[-1] = blocks[-1].rstrip() + "\n\n"
            blocks.append("")
        blocks[-1] += line
    blocks[-1] = blocks[-1].rstrip() + "\n\n"
    return blocks


def _table(block: str) -> str:
    found = _HEADER.match(block)
    return found[1] if found else ""


def _of_variant(blocks: list[str], name: str) -> tuple[int, int]:
    """The block of a variant, and the end of what belongs to it."""
    for at, block in enumerate(blocks):
        if _table(block) == "variant" and f"\nname = {json.dumps(name)}\n" in block:
            end = at + 1
            while end < len(blocks) and _table(blocks[end]) == "variant.fact":
                end += 1
            return at, end
    raise LabError(f"there is no variant {name}")


def _without(block: str, fact: NewFact) -> str:
    """The fact without these values; nothing, if it has no others."""
    starts = tuple(f"sets.{path} = " for path in fact.sets)
    kept = [line for line in block.splitlines(keepends=True) if not line.startswith(starts)]
    has_values = any(line.startswith("sets.") for line in kept)
    return "".join(kept) if has_values or not any(line.startswith(starts) for line in block.splitlines()) else ""


def _check(text: str, fact: NewFact) -> None:
    """Check that the text is TOML, and that the fact is in it."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"the file has to be changed by hand: {error}") from error
    facts = [*data.get("fact", ()), *(one for variant in data.get("variant", ()) for one in variant.get("fact", ()))]
    if not any(one["source"] == fact.source and one["checked"] == fact.checked for one in facts):
        raise LabError("the file has to be changed by hand: its facts are written in another way")
