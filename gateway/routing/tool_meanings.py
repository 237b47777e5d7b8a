"""Tools ranked by what they mean: by how near the vectors of their texts are to that of a query.

And the fusion of two rankings, by reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009).
"""

from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Protocol

import anyio
from anyio import to_thread

_KEPT = 20_000
"""Vectors of tools that are kept, most recently used."""
_RANKS = 60
"""The constant of the fusion, as in the paper: the larger, the less the first places count."""


class EmbedderPort(Protocol):
    """What makes vectors of texts."""

    async def embed(self, texts: Sequence[str]) -> "list[array[float]]":
        """Return a vector of length 1 for each text. Raises GatewayError if there are none to be had."""
        ...


class ToolMeanings:
    """The vectors of tools' texts. A text is sent to the embedder once, for as long as its vector is kept."""

    def __init__(self, embedder: EmbedderPort) -> None:
        self._embedder = embedder
        self._vectors: OrderedDict[str, array[float]] = OrderedDict()
        self._asking = anyio.Lock()

    async def best(self, texts: Mapping[str, str], query: str, most: int) -> list[str]:
        """Return the names whose texts are nearest to the query, best first. `texts`: by name.

        Raises:
            GatewayError: the embedder has no vectors for them.
        """
        async with self._asking:  # two searches of one catalogue must not send it twice
            missing = list(dict.fromkeys(text for text in texts.values() if text not in self._vectors))
            *vectors, asked = await self._embedder.embed([*missing, query])
            self._vectors.update(zip(missing, vectors, strict=True))
            known = {name: self._used(text) for name, text in texts.items()}
            while len(self._vectors) > max(_KEPT, len(texts)):
                self._vectors.popitem(last=False)
        return await to_thread.run_sync(_nearest, known, asked, most)

    def _used(self, text: str) -> "array[float]":
        self._vectors.move_to_end(text)
        return self._vectors[text]


def _nearest(known: "Mapping[str, array[float]]", asked: "array[float]", most: int) -> list[str]:
    near = {name: sum(map(mul, vector, asked)) for name, vector in known.items()}
    return sorted(near, key=lambda name: (-near[name], name))[:most]


def fused(*rankings: Sequence[str]) -> list[str]:
    """Return the names of all rankings, those first that stand high in many of them."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking):
            scores[name] = scores.get(name, 0.0) + 1 / (_RANKS + place + 1)
    return sorted(scores, key=lambda name: -scores[name])
