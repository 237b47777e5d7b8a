"""What is known of a host or a framework on one model API, beside how it is run: why a cell is not as it should be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = ("pictures", "documents", "audio", "twice")
"""What `cannot` may name beside cases: a kind of content that the host does not show its model, and `twice`: it writes
the same text more than once."""
NOTES = ("cannot", "not_yet", "differs", "reviewed")
"""The tables of a host's or a framework's file that have a sentence for each case."""


@dataclass(frozen=True, kw_only=True)
class ApiNotes:
    """The simulator that stands for a host on one model API, and sentences by case."""

    simulator: str | None = None
    cannot: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a case, or all of a kind, cannot be seen, even through the gateway."""
    not_yet: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why the gateway does not have a case seen although the host could show it: what is known and open."""
    differs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cases of which the simulator says something else, and why that is open."""
    reviewed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cases of which the profile says something else than the run, and why it stays so."""


def notes_in(whole: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `ApiNotes` for one API (`own`) of the host or framework of a file (`whole`)."""
    notes = {name: {**whole.get(name, {}), **own.get(name, {})} for name in NOTES}
    return {"simulator": own.get("simulator") or whole.get("simulator"), **notes}
