"""Where a script was when it was ended from outside: at the last function that it called."""

from typing import Any


class LastCall:
    """The line of the last call of a script; None before the first, and where it is not known."""

    def __init__(self) -> None:
        self.line: int | None = None

    def set(self, line: Any) -> None:
        """Take the line that the script's process says, which may be anything."""
        self.line = line if isinstance(line, int) and line > 0 else None

    def words(self) -> str:
        """Return where it was, to be added to why it was ended; empty if that is not known."""
        return "" if self.line is None else f"; the last function that it called was at line {self.line}"
