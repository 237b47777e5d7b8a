"""One host's calibration under way: which parts it was shown, and which of their codes it has reported."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gateway.core.profiles.calibrate_profile import PARTS, Sight, is_answered

Phase = Literal["showing", "waiting", "over"]
"""`waiting`: for what can be read after the user's next message."""

LENGTH = 5
_TONES = frozenset({"sound"})


@dataclass
class CalibrationSession:
    """Codes belong to the blocks that were shown last; each report is judged once, and no more codes of it are looked
    at than were asked for, so that guessing is worth nothing."""

    phase: Phase = "showing"
    model: str | None = None
    """What the model says that it is."""
    _codes: dict[str, str] = field(default_factory=dict[str, str])
    _reported: set[str] = field(default_factory=set[str])
    """Parts."""
    _now: set[str] = field(default_factory=set[str])
    _later: set[str] = field(default_factory=set[str])

    @property
    def left(self) -> list[str]:
        """The parts that were not reported yet."""
        return [part for part in PARTS if part not in self._reported and not is_answered(part, self._now)]

    @property
    def has_more_to_see(self) -> bool:
        """Whether all is reported, and something was not read yet."""
        return self.phase == "waiting"

    @property
    def next_part(self) -> str | None:
        """The first part that was not shown yet, else the first that was not reported."""
        return next((part for part in self.left if PARTS[part][0] not in self._codes), next(iter(self.left), None))

    @property
    def sight(self) -> Sight:
        """What was read, of the parts that were reported."""
        shown = frozenset(block for part in PARTS if part in self._reported for block in PARTS[part])
        return Sight(shown, frozenset(self._now), frozenset(self._later))

    def show(self, part: str) -> dict[str, str]:
        """New codes for the blocks of a part; what was reported of it before is forgotten."""
        self.phase = "showing"
        self._reported.discard(part)
        self._now.difference_update(PARTS[part])
        for block in PARTS[part]:
            self._codes[block] = self._new_code(block)
        return {block: self._codes[block] for block in PARTS[part]}

    def report(self, codes: Sequence[str]) -> int | None:
        """Judge what was read at once of the parts shown since the last report; how many codes were looked at.

        None when there is no such part.
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
        """Judge what was read after the user's message, of all parts; the session is over."""
        unread = self._unread()
        given = codes[: len(self._codes)]
        self._later.update(block for block in unread if self._codes[block] in given)
        self.phase = "over"

    def _unread(self) -> list[str]:
        return [block for block in self._codes if block not in self._now]

    def _new_code(self, block: str) -> str:
        # No code begins with 0: models write them as numbers, too.
        rest = "12345" if block in _TONES else "0123456789"
        first = rest.replace("0", "")
        while True:
            code = secrets.choice(first) + "".join(secrets.choice(rest) for _ in range(LENGTH - 1))
            if code not in self._codes.values():
                return code
