"""Dates and times as text: reading those of the configuration, and formatting seconds."""

from datetime import UTC, date, datetime
from typing import Literal


def moment_in(text: str) -> date | None:
    """Return the date or time that a text is (ISO 8601); None if it is neither."""
    for read in (date.fromisoformat, datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            pass
    return None


def seconds_of_moment(moment: date) -> float:
    """Return the seconds since 1970. A time that names no zone is in the local one; a date begins in UTC."""
    if isinstance(moment, datetime):
        return moment.timestamp()
    return datetime(moment.year, moment.month, moment.day, tzinfo=UTC).timestamp()


def moment_text(seconds: float, timespec: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """Format seconds since 1970 as `2026-11-20T09:30:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
