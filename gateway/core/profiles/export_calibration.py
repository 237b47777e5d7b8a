"""A calibration as records of the matrix, for a file that can be sent in, and back as what the model read. Pure.

Only what is listed here gets into the file: the host's name, version and model with all but plain characters removed,
the day, the gateway's version, and which blocks were read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from gateway.core.profiles.calibrate_profile import PARTS, PLAIN, SEVERAL, TEXTS, Sight, When
from gateway.core.profiles.client_names import normalise_client_name
from gateway.core.profiles.matrix import CaseEvidence, CaseRecord, Cell

_LONGEST = 60
_PATH = re.compile(r"[/\\@]")
_REPLACED = re.compile(r"[^A-Za-z0-9._+() -]+")
_REPLACED_IN_NAMES = re.compile(r"[^a-z0-9._+-]+")


@dataclass(frozen=True)
class _Case:
    """A case of the matrix that blocks of a calibration are: `pictures` of them are images."""

    returns: str
    blocks: tuple[str, ...]
    pictures: int = 0


_CASES: Mapping[str, _Case] = {
    "text": _Case("text", (PLAIN,)),
    "chart": _Case("a text and a PNG", ("png",), 1),
    "jpeg": _Case("a JPEG", ("jpeg",), 1),
    "webp": _Case("a WebP", ("webp",), 1),
    "gif": _Case("a GIF", ("gif",), 1),
    "svg_as_png": _Case("an SVG that was rendered as PNG", ("svg",), 1),
    "eight": _Case(f"{SEVERAL} pictures", PARTS["several pictures"], SEVERAL),
    "large": _Case("a PNG of 4,000 pixels", ("large",), 1),
    "fine": _Case("the finest digits of a PNG of 4,000 pixels", ("fine",), 1),
    "embedded": _Case("a PNG in a resource", ("embedded",), 1),
    "pdf": _Case("a PDF", ("document",)),
    "error_text": _Case("the text of an error", ("error text",)),
    "error": _Case("a PNG beside an error", ("error picture",), 1),
    "beside_structured": _Case("a text beside structured content", ("text beside",)),
    "structured_chart": _Case("a PNG beside structured content", ("picture beside",), 1),
    "structured_beside": _Case("structured content beside a text and a PNG", ("structured",)),
    **{f"text_{length}": _Case(part, PARTS[part]) for part, length in TEXTS.items()},
    "sound": _Case("sound", ("sound",)),
}
_CASE_OF = {block: name for name, case in _CASES.items() for block in case.blocks}


@dataclass(frozen=True)
class ExportedHost:
    """The host of a calibration, the day, and the version of the gateway that it was done with."""

    client_name: str
    client_version: str | None
    model: str | None
    day: date
    gateway_version: str


def calibration_records(host: ExportedHost, read: Mapping[str, When]) -> Iterator[CaseRecord]:
    """Yield a record for each case whose blocks were all shown. `read`: see `Sight.read`."""
    title = plain_words(host.client_name) or "a host without a name"
    evidence = CaseEvidence(level="calibrated", reference=f"mcp-gateway calibrate {host.gateway_version}")
    for name, case in _CASES.items():
        if not all(block in read for block in case.blocks):
            continue
        yield CaseRecord(
            host=_identifier(host.client_name),
            title=title,
            version=plain_words(host.client_version or "") or None,
            model=plain_words(host.model or "") or None,
            case=name,
            returns=case.returns,
            directly=_cell(case, read),
            evidence=evidence,
            date=host.day,
            read={block: read[block] for block in case.blocks},
        )


def _cell(case: _Case, read: Mapping[str, When]) -> Cell:
    count = sum(read[block] != "not" for block in case.blocks)
    late = any(read[block] == "a turn late" for block in case.blocks)
    return Cell(
        verdict="seen" if count == len(case.blocks) else "lost",
        why="only after the next message" if late else "",
        shown=count if case.pictures else None,
        of=case.pictures or None,
    )


def plain_words(text: str) -> str:
    """Return a name without what could be a path or hide something: its last part, of letters, digits and `._+() -`."""
    last = _PATH.split(text[:1_000].rstrip("/\\ "))[-1]
    return " ".join(_REPLACED.sub("-", last).split())[:_LONGEST].strip(" -")


def _identifier(name: str) -> str:
    return _REPLACED_IN_NAMES.sub("-", normalise_client_name(plain_words(name))).strip("-._+") or "unnamed"


def sight_of(records: Iterable[CaseRecord]) -> Sight:
    """Return what the model of a calibration read, from its records. Blocks that no calibration has are left out."""
    read = {
        block: when
        for record in records
        for block, when in (record.read or {}).items()
        if _CASE_OF.get(block) == record.case
    }
    return Sight(
        frozenset(read),
        frozenset(block for block, when in read.items() if when == "at once"),
        frozenset(block for block, when in read.items() if when == "a turn late"),
    )
