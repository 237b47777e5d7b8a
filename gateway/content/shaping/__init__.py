"""Shaping: a result is lifted, settled by the one loop of decisions and effects, and lowered."""

from gateway.content.shaping.effects import CallersTools, Reach
from gateway.content.shaping.shaper import Shaped, Shaper

__all__ = ["CallersTools", "Reach", "Shaped", "Shaper"]
