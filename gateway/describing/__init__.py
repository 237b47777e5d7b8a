"""Describing: an image or a sound in words, for hosts and models that cannot take it. Off unless it was configured."""

from gateway.describing.describer import Describer
from gateway.describing.opening import open_describer

__all__ = ["Describer", "open_describer"]
