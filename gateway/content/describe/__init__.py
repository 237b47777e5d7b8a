"""Describing: an image or a sound in words, for hosts and models that cannot take it. Off unless it was configured."""

from gateway.content.describe.describer import Describer
from gateway.content.describe.opening import open_describer

__all__ = ["Describer", "open_describer"]
