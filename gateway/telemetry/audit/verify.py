"""Verify a chain of audit lines: say exactly where lines were changed, removed, inserted or cut off."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gateway.core.fact_words import counted
from gateway.core.model.json_values import as_object
from gateway.telemetry.audit.chain import (
    BEFORE_THE_FIRST,
    NOTHING,
    Link,
    files_of,
    link_of,
    previous_of,
    read_head,
    sha256_of,
)

_RESUMED = "start"


class ChainBreak(NamedTuple):
    """A place at which a chain is broken: the file, the line in it (from 1 on; 0: the file as a whole), and how."""

    file: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.what}"


@dataclass
class Verification:
    """What was found: the number of lines and files, the last line, breaks, and what is harmless but worth knowing."""

    lines: int = 0
    files: int = 0
    last: Link = NOTHING
    breaks: list[ChainBreak] = field(default_factory=list[ChainBreak])
    remarks: list[str] = field(default_factory=list[str])


class _Torn(NamedTuple):
    """A line that cannot be read: where it is, and its hash."""

    file: Path
    line: int
    sha256: str


def verify_chain(path: Path) -> Verification:
    """Verify the chain that is written at `path`, over all of its files.

    Raises:
        OSError: a file cannot be read.
    """
    found = Verification()
    files = files_of(path)
    found.files = len(files)
    try:
        head = read_head(path)
    except ValueError:
        head = None
        found.breaks.append(ChainBreak(path, 0, "its head file is damaged, so lines may have been cut off the end"))
    else:
        if head is None and any(file.stat().st_size for file in files):
            found.breaks.append(ChainBreak(path, 0, "its head file is missing, so lines may have been cut off the end"))
    hashes: dict[str, int] = {}
    _follow(found, files, head.removed if head is not None else NOTHING, hashes)
    if head is None or head.last == found.last:
        return found
    place = (files[-1] if files else path, 0)
    if head.last.sha256 in hashes:
        after = found.last.sequence - head.last.sequence
        found.remarks.append(f"{counted(after, 'line')} after the head: a gateway is writing, or was killed")
    elif head.last.sequence > found.last.sequence:
        cut = _numbers(found.last.sequence + 1, head.last.sequence)
        found.breaks.append(ChainBreak(*place, f"{cut} cut off the end"))
    else:
        found.breaks.append(ChainBreak(*place, f"line {head.last.sequence} was changed, by what the head file says"))
    return found


def records_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a chain that can be read, the oldest first. Raises OSError."""
    for file in files_of(path):
        with file.open("rb") as lines:
            for line in lines:
                record = _record(line.rstrip(b"\n"))
                if record:
                    yield record


def _follow(found: Verification, files: list[Path], removed: Link, hashes: dict[str, int]) -> None:
    before: Link | None = None
    torn: _Torn | None = None
    for file in files:
        with file.open("rb") as lines:
            for number, ended in enumerate(lines, start=1):
                line = ended.removesuffix(b"\n")
                found.lines += 1
                if previous_of(line) is None:
                    _report_torn(found, torn)
                    torn = _Torn(file, number, sha256_of(line))
                    continue
                record, link = _record(line), link_of(line)
                if torn is not None and record.get("torn") == torn.sha256:
                    found.remarks.append(f"{torn.file}:{torn.line}: a line that was never finished: its gateway ended")
                else:
                    _report_torn(found, torn)
                torn = None
                _compare(found, ChainBreak(file, number, ""), before, link, record, removed)
                before = found.last = link
                hashes[link.sha256] = link.sequence
    if torn is not None:
        is_last = files and torn.file == files[-1]
        if is_last and not files[-1].read_bytes().endswith(b"\n"):
            found.remarks.append(f"{torn.file}:{torn.line}: the last line is not finished")
        else:
            _report_torn(found, torn)


def _report_torn(found: Verification, torn: _Torn | None) -> None:
    if torn is not None:
        found.breaks.append(ChainBreak(torn.file, torn.line, "is not a line of the audit trail"))


def _compare(
    found: Verification, place: ChainBreak, before: Link | None, link: Link, record: dict[str, Any], removed: Link
) -> None:
    """Compare a line with the one before it, or with what is known of the lines before the first."""
    previous = record["previous"]
    if record.get("event") == _RESUMED and record.get("head"):
        what = f"its head file was {record['head']} when the gateway started, so lines before may have been cut off"
        found.breaks.append(place._replace(what=what))
    if before is None:
        expected = removed if link.sequence == removed.sequence + 1 else NOTHING
        if link.sequence != expected.sequence + 1:
            missing = _numbers(removed.sequence + 1, link.sequence - 1)
            found.breaks.append(place._replace(what=f"{missing} missing"))
        elif previous != (expected.sha256 if expected.sequence else BEFORE_THE_FIRST):
            found.breaks.append(place._replace(what="does not follow the lines that were removed before it"))
        return
    if previous == before.sha256 and link.sequence == before.sequence + 1:
        return
    if link.sequence == before.sequence + 1:
        what = f"line {before.sequence} was changed: line {link.sequence} has another hash of it"
    elif link.sequence > before.sequence + 1:
        what = f"{_numbers(before.sequence + 1, link.sequence - 1)} missing"
    else:
        what = f"line {link.sequence} does not follow line {before.sequence}: lines were inserted or exchanged"
    found.breaks.append(place._replace(what=what))


def _record(line: bytes) -> dict[str, Any]:
    try:
        return dict(as_object(json.loads(line)))
    except ValueError:
        return {}


def _numbers(first: int, last: int) -> str:
    return f"line {first} is" if first == last else f"lines {first} to {last} are"
