"""Describing: an image or a sound in words, for hosts and models that cannot take it. Off unless it was configured."""

from gateway.content.describe.describer import Describer
from gateway.content.describe.open_describer import open_describer

__all__ = ["Describer", "open_describer"]
