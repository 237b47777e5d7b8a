"""Shaping: the one loop between lifting and lowering, and the only owner of it."""

from gateway.content.shaping.effects import CallersTools, Reach
from gateway.content.shaping.shaper import Shaped, Shaper

__all__ = ["CallersTools", "Reach", "Shaped", "Shaper"]
