"""A client for embeddings servers whose API is like OpenAI's.

https://platform.openai.com/docs/api-reference/embeddings/create
"""

import json
import math
from array import array
from collections.abc import Sequence
from typing import Any

import anyio
import httpx2

from gateway._version import __version__
from gateway.config.embeddings_settings import EmbeddingsSettings
from gateway.core.model.json_values import as_object, is_list
from gateway.core.wording import plain, seconds_words, size_words
from gateway.errors import EmbeddingsUnavailable
from gateway.system.loopback import is_this_machine
from gateway.system.response_body import ACCEPTED_ENCODINGS, body_of
from gateway.system.tls import HOOKS, ssl_context

_BATCH = 64
"""Texts of one request; some servers take no more."""
_MOST_BYTES = 32 * 1024 * 1024
"""Maximum size of one answer."""
_MOST_DIMENSIONS = 16_384


class EmbeddingsClient:
    """One server of embeddings, asked for one model. Redirects are not followed."""

    def __init__(self, settings: EmbeddingsSettings) -> None:
        self._settings = settings

    async def embed(self, texts: Sequence[str]) -> list["array[float]"]:
        """Return a vector of length 1 for each text, all with equally many numbers.

        Raises:
            EmbeddingsUnavailable: the server does not answer in time, or not with vectors for all texts.
        """
        vectors: list[array[float]] = []
        with anyio.move_on_after(self._settings.timeout):
            async with self._client() as client:
                for first in range(0, len(texts), _BATCH):
                    vectors += await self._asked(client, texts[first : first + _BATCH])
            if len({len(vector) for vector in vectors}) > 1:
                raise self._unavailable("answers with vectors of different lengths")
            return vectors
        raise self._unavailable(f"did not answer within {seconds_words(self._settings.timeout)}")

    def _client(self) -> httpx2.AsyncClient:
        headers = {"accept-encoding": ACCEPTED_ENCODINGS, "user-agent": f"mcp-gateway/{__version__}"}
        if self._settings.api_key:
            headers["authorization"] = f"Bearer {self._settings.api_key}"
        return httpx2.AsyncClient(
            headers=headers,
            verify=ssl_context(),
            timeout=self._settings.timeout,
            trust_env=not is_this_machine(httpx2.URL(self._settings.url).host),
            follow_redirects=False,
            event_hooks=HOOKS,
        )

    async def _asked(self, client: httpx2.AsyncClient, texts: Sequence[str]) -> list["array[float]"]:
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
        vectors = _vectors(body, len(texts))
        if vectors is None:
            raise self._unavailable("does not answer with a vector for each text: is this the address of such an API?")
        return vectors

    def _unavailable(self, what: str) -> EmbeddingsUnavailable:
        return EmbeddingsUnavailable(
            f"the embeddings server {plain(self._settings.url, 200)} {what}", remedy="see [tool_search.embeddings]"
        )


def _vectors(body: bytes, count: int) -> "list[array[float]] | None":
    """Return the vectors of an answer in the order of the texts; None if they are not what was asked for."""
    try:
        rows = as_object(json.loads(body)).get("data")
    except (ValueError, RecursionError):
        return None
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
