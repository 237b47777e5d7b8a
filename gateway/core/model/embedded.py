"""Vectors of texts, and the model that made them."""

from array import array
from collections.abc import Mapping
from typing import NamedTuple


class Embedded(NamedTuple):
    """A vector for each of some texts, of at least one, all with equally many numbers. `model` as its server names it.

    Only vectors of one model can be compared.
    """

    vectors: "Mapping[str, array[float]]"
    model: str

    @property
    def dimensions(self) -> int:
        """The numbers of each vector."""
        return len(next(iter(self.vectors.values())))
