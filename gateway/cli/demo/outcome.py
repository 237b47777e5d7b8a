"""The demo's findings as values: one cell for each host and case, with its two sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gateway.cli.demo.cases import Case
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.side import Side, summary


@dataclass(frozen=True)
class Cell:
    """One host and one case, without the gateway and with it."""

    host: SimulatedHost
    case: Case
    direct: Side
    through: Side


@dataclass(frozen=True)
class Outcome:
    """The outcome of the whole demo, with cells in the order of cases and hosts, and the duration in `seconds`."""

    hosts: tuple[SimulatedHost, ...]
    cases: tuple[Case, ...]
    cells: tuple[Cell, ...]
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether every cell is good through the gateway."""
        return bool(self.cells) and all(cell.through.is_good for cell in self.cells)

    def count(self, side: Literal["direct", "through"]) -> int:
        """Return the number of good cells."""
        return sum(getattr(cell, side).is_good for cell in self.cells)

    def count_seen(self, side: Literal["direct", "through"]) -> int:
        """Return the number of cells whose model sees everything."""
        return sum(getattr(cell, side).is_seen for cell in self.cells)

    def row(self, case: Case) -> Sequence[Cell]:
        """Return the cells of a case, in the order of the hosts."""
        return [cell for cell in self.cells if cell.case is case]

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON for programs."""
        return {
            "good": self.is_good,
            "seconds": round(self.seconds, 1),
            "cells": len(self.cells),
            "good_direct": self.count("direct"),
            "good_through": self.count("through"),
            "seen_direct": self.count_seen("direct"),
            "seen_through": self.count_seen("through"),
            "results": [
                {
                    "host": cell.host.name,
                    "case": cell.case.name,
                    "tool": f"{cell.case.upstream}__{cell.case.tool}",
                    "direct": _side_json(cell.direct),
                    "through": _side_json(cell.through),
                }
                for cell in self.cells
            ],
        }


def _side_json(side: Side) -> dict[str, Any]:
    words, _ = summary(side)
    verdict = side.verdict
    base: dict[str, Any] = {"summary": words, "good": side.is_good, "problems": list(side.problems)}
    if verdict is None:
        return base
    return {
        **base,
        "images_shown": verdict.shown,
        "images_expected": verdict.expected,
        "images_named": verdict.named,
        "base64_chars": verdict.leak,
    }
