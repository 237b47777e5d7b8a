"""A client for embeddings servers whose API is like OpenAI's.

https://platform.openai.com/docs/api-reference/embeddings/create
"""

import json
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import httpx2

from gateway.config.embeddings_settings import EmbeddingsSettings
from gateway.core.fact_words import plain, seconds_words, size_words
from gateway.core.model.embedded import Embedded
from gateway.core.model.json_values import as_object, as_text, is_list
from gateway.errors import EmbeddingsUnavailable
from gateway.system.http_client import api_client
from gateway.system.response_body import body_of

_BATCH = 64
"""Texts of one request; some servers take no more."""
_MOST_BYTES = 32 * 1024 * 1024
"""Maximum size of one answer."""
_MOST_DIMENSIONS = 16_384


class EmbeddingsClient:
    """One server of embeddings, asked for one model. Redirects are not followed."""

    def __init__(self, settings: EmbeddingsSettings) -> None:
        self._settings = settings

    async def embed(self, texts: Sequence[str], on_embedded: Callable[[Embedded], None]) -> None:
        """Ask for a vector of length 1 for each text. `on_embedded` gets those of some texts as soon as they are there.

        Raises:
            EmbeddingsUnavailable: the server does not answer in time, or not with vectors for all texts.
        """
        with anyio.move_on_after(self._settings.timeout):
            async with self._client() as client:
                for first in range(0, len(texts), _BATCH):
                    on_embedded(await self._asked(client, texts[first : first + _BATCH]))
            return
        raise self._unavailable(f"did not answer within {seconds_words(self._settings.timeout)}")

    def _client(self) -> httpx2.AsyncClient:
        key = self._settings.api_key
        headers = {"authorization": f"Bearer {key}"} if key else None
        return api_client(self._settings.url, self._settings.timeout, headers)

    async def _asked(self, client: httpx2.AsyncClient, texts: Sequence[str]) -> Embedded:
        url = f"{self._settings.url.rstrip('/')}/embeddings"
        asked = {"model": self._settings.model, "input": list(texts), "encoding_format": "float"}
        try:
            async with client.stream("POST", url, json=asked) as response:
                body = await body_of(response, _MOST_BYTES)
                if body is None:
                    raise self._unavailable(f"sends more than {size_words(_MOST_BYTES)} at once")
                if response.status_code != 200:
                    said = plain(body[:300].decode("utf-8", "replace"), 200)
                    raise self._unavailable(f"answers with HTTP {response.status_code}: {said}")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self._unavailable(f"cannot be asked: {plain(str(error), 200) or type(error).__name__}") from None
        answer = _parsed(body)
        vectors = _vectors(answer, len(texts))
        if vectors is None:
            raise self._unavailable("does not answer with a vector for each text: is this the address of such an API?")
        if len({len(vector) for vector in vectors}) > 1:
            raise self._unavailable("answers with vectors of different lengths")
        model = as_text(answer.get("model")) or self._settings.model
        return Embedded(dict(zip(texts, vectors, strict=True)), plain(model, 200))

    def _unavailable(self, what: str) -> EmbeddingsUnavailable:
        return EmbeddingsUnavailable(
            f"the embeddings server {plain(self._settings.url, 200)} {what}", remedy="see [tool_search.embeddings]"
        )


def _parsed(body: bytes) -> Mapping[str, Any]:
    try:
        return as_object(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def _vectors(answer: Mapping[str, Any], count: int) -> "list[array[float]] | None":
    """Return the vectors of an answer in the order of the texts; None if they are not what was asked for."""
    rows = answer.get("data")
    if not is_list(rows) or len(rows) != count:
        return None
    placed: dict[int, array[float]] = {}
    for place, row in enumerate(map(as_object, rows)):
        index, vector = row.get("index", place), _of_length_1(row.get("embedding"))
        if not isinstance(index, int) or not 0 <= index < count or vector is None:
            return None
        placed[index] = vector
    return [placed[index] for index in range(count)] if len(placed) == count else None


def _of_length_1(numbers: Any) -> "array[float] | None":
    if not is_list(numbers) or not 0 < len(numbers) <= _MOST_DIMENSIONS:
        return None
    if not all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        return None
    try:
        length = math.hypot(*numbers)
    except OverflowError:
        return None
    if not math.isfinite(length) or not length:
        return None
    return array("f", (number / length for number in numbers))
