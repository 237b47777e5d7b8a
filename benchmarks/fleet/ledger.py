"""The accountant of a run: what was asked, what was promised, and what became of it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Outcome = Literal["ok", "told why", "cut off", "lost"]
"""`told why`: an error that says what happened. `cut off`: the connection broke in the middle of an answer. `lost`:
no answer in time, or something that was promised is not there."""

MARK: Final = re.compile(r"mark-\d+-\d+-[0-9a-f]{8}")


class Promise(NamedTuple):
    """Content that a host was given a handle for: whose it is, and the mark in its bytes."""

    handle: str
    principal: str
    mark: str


@dataclass
class Call:
    """One call of a host, with whatever it took to get an answer. Times are in seconds, of the loop's clock."""

    phase: int
    kind: str
    revision: str
    mark: str
    began: float
    ended: float = 0.0
    retried: list[str] = field(default_factory=list[str])
    repeated: int = 0
    """How often the host made the call again itself, after the connection had broken."""
    outcome: Outcome = "ok"
    reason: str = ""


@dataclass
class Ledger:
    """Everything that is known of a run. `phase` is the number of the one that runs."""

    phase: int = 0
    calls: list[Call] = field(default_factory=list[Call])
    promises: list[Promise] = field(default_factory=list[Promise])
    not_kept: Counter[int] = field(default_factory=Counter[int])
    """Results without a handle that said so, by phase."""
    reopened: Counter[int] = field(default_factory=Counter[int])
    """Sessions that hosts had to open again, by phase."""
    foreign: list[str] = field(default_factory=list[str])
    """What somebody has seen of somebody else's."""
    lost: list[str] = field(default_factory=list[str])
    """What was promised and is not there."""

    def look_for_others(self, mark: str, text: str, where: str) -> None:
        """Note every mark of another call in what a host was answered."""
        for found in set(MARK.findall(text)) - {mark}:
            self.foreign.append(f"{where}: {found} in the answer to {mark}")

    def of_phase(self, phase: int) -> list[Call]:
        """Return the calls that were begun in a phase."""
        return [call for call in self.calls if call.phase == phase]

    def carried_out(self, counts: "dict[str, int]") -> None:
        """Compare with how often the server was called: nobody but the host itself repeats a call."""
        for call in self.calls:
            if counts.get(call.mark, 0) > 1 + call.repeated:
                self.lost.append(f"{call.kind} {call.mark} was carried out {counts[call.mark]} times")

    def broken_promises(self) -> list[str]:
        """Return everything that must not be, as sentences; none after a run in which all was well."""
        lost = [f"{call.kind} ({call.revision}): {call.reason}" for call in self.calls if call.outcome == "lost"]
        silent = [
            f"{call.kind} ({call.revision}) failed without a word: {call.reason!r}"
            for call in self.calls
            if call.outcome == "told why" and not call.reason.strip()
        ]
        return [*(f"lost: {one}" for one in (*self.lost, *lost)), *(f"seen: {one}" for one in self.foreign), *silent]


def recovered_after(calls: Sequence[Call], fault: float) -> float:
    """Return the seconds from a fault until the last call has ended that failed, or had to be asked for again."""
    troubled = [call.ended - fault for call in calls if call.outcome != "ok" or call.retried]
    return max(troubled, default=0.0)
