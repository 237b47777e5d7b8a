"""Describe images and sound in words, for hosts and models that cannot take them. Off unless configured."""

from gateway.content.describe.describer import Describer
from gateway.content.describe.open_describer import open_describer

__all__ = ["Describer", "open_describer"]
