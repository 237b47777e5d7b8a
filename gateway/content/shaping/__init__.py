"""Shape results: lift them, settle them in the one loop of decisions and effects, and lower them."""

from gateway.content.shaping.effects import CallersTools, Reach
from gateway.content.shaping.shaper import Shaped, Shaper

__all__ = ["CallersTools", "Reach", "Shaped", "Shaper"]
