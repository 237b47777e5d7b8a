"""Findings of an examination, each with its remedy if there is one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["ok", "warning", "problem"]
"""`ok`: in order; `warning`: it works, but deserves attention; `problem`: something does not work."""

_LISTED = 8


@dataclass(frozen=True)
class CheckResult:
    """One finding.

    `about` names what was examined, such as `configuration` or `upstream charts`; findings with the same name are shown
    together. `remedy` is the command or edit that fixes it; if it is `ok`, one that would change it, which is displayed
    only if `is_next_step`. `hosts` are the profiles concerned; empty means all of them. `stderr` are the last lines of
    a program that ended.
    """

    about: str
    level: Level
    text: str
    remedy: str | None = None
    hosts: tuple[str, ...] = ()
    is_next_step: bool = False
    stderr: tuple[str, ...] = ()

    @property
    def advice(self) -> str | None:
        """The remedy, if there is something to do."""
        return self.remedy if self.level != "ok" or self.is_next_step else None

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON; `cure` (the remedy), `hosts` and `stderr` are omitted if empty."""
        more = {"cure": self.remedy, "hosts": list(self.hosts), "stderr": list(self.stderr)}
        base = {"about": self.about, "level": self.level, "text": self.text}
        return {**base, **{key: value for key, value in more.items() if value}}


@dataclass(frozen=True)
class Diagnosis:
    """All findings, in the order of the examination. `usable`: whether the gateway would start."""

    findings: tuple[CheckResult, ...]
    usable: bool = True

    def count(self, level: Level) -> int:
        """Return the number of findings of this level."""
        return sum(finding.level == level for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as JSON."""
        return {
            "ok": self.usable and not self.count("problem"),
            "usable": self.usable,
            "problems": self.count("problem"),
            "warnings": self.count("warning"),
            "findings": [finding.to_json() for finding in self.findings],
        }


def list_names(names: Iterable[str], most: int = _LISTED) -> str:
    """Join names with commas; of many, show only the first ones and the number of the others."""
    every: Sequence[str] = list(names)
    more = len(every) - most
    return ", ".join(every) if more <= 0 else f"{', '.join(every[:most])} and {more} more"
