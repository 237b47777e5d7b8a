"""Shaping: the one loop between lifting and lowering, and the only owner of it."""

from gateway.shaping.effects import Reach
from gateway.shaping.shaper import Shaped, Shaper

__all__ = ["Reach", "Shaped", "Shaper"]
