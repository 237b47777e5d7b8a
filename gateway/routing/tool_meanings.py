"""Tools ranked by what they mean: by how near the vectors of their texts are to that of a query.

And the fusion of two rankings, by reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009).
"""

import logging
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import Protocol

import anyio
from anyio import to_thread

from gateway.core.model.embedded import Embedded
from gateway.errors import EmbeddingsUnavailable

logger = logging.getLogger(__name__)

_KEPT = 20_000
"""Vectors of tools that are kept, most recently used."""
_PASSES = 3
"""How often texts are sent if the model changes meanwhile."""
_RANKS = 60
"""The constant of the fusion, as in the paper: the larger, the less the first places count."""


class EmbedderPort(Protocol):
    """Makes vectors of texts."""

    async def embed(self, texts: Sequence[str], on_embedded: Callable[[Embedded], None]) -> None:
        """Make a vector of length 1 for each text, and give them to `on_embedded`, some at a time.

        Raises:
            GatewayError: there are none to be had, or none for those that were not given yet.
        """
        ...


class ToolMeanings:
    """The vectors of tools' texts. A text is sent to the embedder once, for as long as its vector is kept.

    What is embedded before the embedder fails is kept. If it answers with the vectors of another model, all are made
    again: those of two models cannot be compared. `embedder` may be replaced by another for the same model.
    """

    def __init__(self, embedder: EmbedderPort) -> None:
        self.embedder = embedder
        self._vectors: OrderedDict[str, array[float]] = OrderedDict()
        self._query: array[float] | None = None
        """That of the query, while it is asked."""
        self._made_by: tuple[str, int] | None = None
        """The model, and the numbers of a vector."""
        self._asking = anyio.Lock()

    async def best(self, texts: Mapping[str, str], query: str, most: int) -> list[str]:
        """Return the names whose texts are nearest to the query, best first. `texts`: by name.

        Raises:
            GatewayError: the embedder has no vectors for them.
        """
        async with self._asking:  # two searches of one catalogue must not send it twice
            asked = await self._embedded(texts, query)
            known = {name: self._used(text) for name, text in texts.items()}
            while len(self._vectors) > max(_KEPT, len(texts)):
                self._vectors.popitem(last=False)
        return await to_thread.run_sync(_nearest, known, asked, most)

    async def _embedded(self, texts: Mapping[str, str], query: str) -> "array[float]":
        """Have a vector for each of the texts, and return that of the query."""
        self._query = None
        for _ in range(_PASSES):
            missing = list(dict.fromkeys(text for text in texts.values() if text not in self._vectors))
            if self._query is not None and not missing:
                return self._query
            await self.embedder.embed([*missing, query], lambda some: self._keep(some, query, texts))
        raise EmbeddingsUnavailable(
            "the embeddings server answers with vectors of one model and then of another",
            remedy="have it serve one model under the name in [tool_search.embeddings]",
        )

    def _keep(self, some: Embedded, query: str, texts: Mapping[str, str]) -> None:
        made_by = (some.model, some.dimensions)
        if self._made_by not in (None, made_by):
            logger.warning(
                "the embeddings server answers with vectors of %s (%d numbers), before with those of %s (%d numbers): "
                "all tools are embedded again",
                *made_by,
                *(self._made_by or ()),
            )
            self._vectors.clear()
            self._query = None
        self._made_by = made_by
        vectors = dict(some.vectors)
        self._query = vectors.get(query, self._query)
        if query not in texts.values():
            vectors.pop(query, None)
        self._vectors.update(vectors)

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
