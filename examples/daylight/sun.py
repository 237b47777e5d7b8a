"""Hours of daylight, by the usual approximation: accurate to a quarter of an hour."""

from datetime import date, timedelta
from math import acos, cos, pi, radians, tan

YEAR = 2026
MONTHS = ("January", "February", "March", "April", "May", "June")
MONTHS += ("July", "August", "September", "October", "November", "December")

_TILT = 23.44


def hours(latitude: float, day: date) -> float:
    """Return the hours between sunrise and sunset: 0 in the polar night, 24 if the sun does not set."""
    declination = -radians(_TILT) * cos(2 * pi * (day.timetuple().tm_yday + 10) / 365)
    angle = -tan(radians(latitude)) * tan(declination)
    return round(24 / pi * acos(max(-1.0, min(1.0, angle))), 2)


def year(latitude: float) -> list[float]:
    """Return the hours in the middle of each month."""
    return [hours(latitude, date(YEAR, month, 15)) for month in range(1, 13)]


def month(latitude: float, number: int) -> list[float]:
    """Return the hours of each day of a month."""
    first = date(YEAR, number, 1)
    days = (first + timedelta(days=passed) for passed in range(31))
    return [hours(latitude, day) for day in days if day.month == number]
