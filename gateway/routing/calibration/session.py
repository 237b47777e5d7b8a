"""The calibration of one host in progress: the parts that it was shown, and the codes that it has reported."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gateway.core.profiles.calibrate_profile import PARTS, Sight, is_answered

Phase = Literal["showing", "waiting", "over"]
"""`waiting`: for codes that the model can read only after the user's next message."""

LENGTH = 5
_TONES = frozenset({"sound"})


@dataclass
class CalibrationSession:
    """The codes shown to one host, and its reports.

    Codes belong to the blocks that were shown last. Each report is judged once, and only as many of its codes are
    considered as were asked for, so guessing gains nothing.
    """

    phase: Phase = "showing"
    model: str | None = None
    """The model's own answer to which model it is."""
    _codes: dict[str, str] = field(default_factory=dict[str, str])
    _reported: set[str] = field(default_factory=set[str])
    """Parts."""
    _now: set[str] = field(default_factory=set[str])
    _later: set[str] = field(default_factory=set[str])

    @property
    def left(self) -> list[str]:
        """The parts that have not been reported yet."""
        return [part for part in PARTS if part not in self._reported and not is_answered(part, self._now)]

    @property
    def has_more_to_see(self) -> bool:
        """Whether every part has been reported, but some codes have not been read yet."""
        return self.phase == "waiting"

    @property
    def next_part(self) -> str | None:
        """The first part that has not been shown yet, or else the first that has not been reported."""
        return next((part for part in self.left if PARTS[part][0] not in self._codes), next(iter(self.left), None))

    @property
    def sight(self) -> Sight:
        """The codes that were read of the parts that were reported."""
        shown = frozenset(block for part in PARTS if part in self._reported for block in PARTS[part])
        return Sight(shown, frozenset(self._now), frozenset(self._later))

    def show(self, part: str) -> dict[str, str]:
        """Return new codes for the blocks of a part, and discard what was reported of it before."""
        self.phase = "showing"
        self._reported.discard(part)
        self._now.difference_update(PARTS[part])
        for block in PARTS[part]:
            self._codes[block] = self._new_code(block)
        return {block: self._codes[block] for block in PARTS[part]}

    def report(self, codes: Sequence[str]) -> int | None:
        """Judge the codes of the parts shown since the last report, and return how many were considered.

        Return None if no part has been shown since.
        """
        pending = [part for part in self.left if PARTS[part][0] in self._codes]
        if not pending:
            return None
        blocks = [block for part in pending for block in PARTS[part]]
        given = codes[: len(blocks)]
        self._now.update(block for block in blocks if self._codes[block] in given)
        self._reported.update(pending)
        if not self.left:
            self.phase = "waiting" if self._unread() else "over"
        return len(given)

    def report_later(self, codes: Sequence[str]) -> None:
        """Judge the codes of all parts that were read only after the user's message, and end the session."""
        unread = self._unread()
        given = codes[: len(self._codes)]
        self._later.update(block for block in unread if self._codes[block] in given)
        self.phase = "over"

    def _unread(self) -> list[str]:
        return [block for block in self._codes if block not in self._now]

    def _new_code(self, block: str) -> str:
        # No code begins with 0, because models also write them as numbers.
        rest = "12345" if block in _TONES else "0123456789"
        first = rest.replace("0", "")
        while True:
            code = secrets.choice(first) + "".join(secrets.choice(rest) for _ in range(LENGTH - 1))
            if code not in self._codes.values():
                return code
