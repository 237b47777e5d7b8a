"""What an examination found: one finding for each thing that was looked at, with the remedy where there is one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["ok", "warning", "problem"]
"""`ok`: as it should be; `warning`: it works, and somebody should look; `problem`: something does not work."""

_LISTED = 8


@dataclass(frozen=True)
class CheckResult:
    """One finding.

    `about` is what was examined, as `configuration` or `upstream charts`: findings of one thing are shown together.
    `remedy` is the command or the edit that mends it; where all is well, one that makes it different, which people are
    shown only where it `is_next_step`. `hosts` are the profiles that it is about; none: all of them.
    """

    about: str
    level: Level
    text: str
    remedy: str | None = None
    hosts: tuple[str, ...] = ()
    is_next_step: bool = False

    @property
    def advice(self) -> str | None:
        """The remedy, where there is something to be done."""
        return self.remedy if self.level != "ok" or self.is_next_step else None

    def to_json(self) -> dict[str, Any]:
        """The finding for programs; `cure`, which is the remedy, and `hosts` only where there are any."""
        more = {"cure": self.remedy, "hosts": list(self.hosts)}
        base = {"about": self.about, "level": self.level, "text": self.text}
        return {**base, **{key: value for key, value in more.items() if value}}


@dataclass(frozen=True)
class Diagnosis:
    """All findings, in the order of the examination. `usable`: whether the gateway would start at all."""

    findings: tuple[CheckResult, ...]
    usable: bool = True

    def count(self, level: Level) -> int:
        """How many findings are of this level."""
        return sum(finding.level == level for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The diagnosis for programs."""
        return {
            "ok": self.usable and not self.count("problem"),
            "usable": self.usable,
            "problems": self.count("problem"),
            "warnings": self.count("warning"),
            "findings": [finding.to_json() for finding in self.findings],
        }


def list_names(names: Iterable[str], most: int = _LISTED) -> str:
    """Names with commas between; of many, the first ones and how many more there are."""
    every: Sequence[str] = list(names)
    more = len(every) - most
    return ", ".join(every) if more <= 0 else f"{', '.join(every[:most])} and {more} more"
