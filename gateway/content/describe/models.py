"""Describe content with a model API: send the media in a user message, and read the text of the response."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import httpx2

from gateway.config.describe_settings import DescribeModel
from gateway.content.describe.fit_for_describer import fit_described
from gateway.core.fact_words import plain
from gateway.core.model.effects import AudioTarget, ImageTarget, MediaWork
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.model.media_types import family
from gateway.core.model.turn import Media, MediaKind, Part, Words
from gateway.core.model_apis import anthropic_messages, openai_chat
from gateway.errors import MediaError

_MOST_ANSWER = 4 * 1024 * 1024
_MOST_TOKENS = 1_024
_SHOWN = 200

_IMAGE = ImageTarget(("image/png", "image/jpeg", "image/webp"), max_edge=1_568, max_bytes=3_500_000, animation=False)
"""Within every model API's limits on one image; see docs/models."""
_AUDIO = AudioTarget(("audio/wav", "audio/mpeg"), max_bytes=15_000_000, max_seconds=600)


@dataclass(frozen=True)
class _Form:
    """An API's form: the end of its path, its headers, its request, and how to read the text of a response."""

    path: str
    headers: Callable[[str], dict[str, str]]
    user_message: Callable[[Sequence[Part]], dict[str, Any]]
    more: Mapping[str, Any]
    said: Callable[[Any], str]
    kinds: frozenset[str]


def _texts(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    if not is_list(parts):
        return ""
    texts = [part.get("text") for part in parts if is_dict(part)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _chat_words(answer: Any) -> str:
    return _texts(answer["choices"][0]["message"]["content"])


def _anthropic_words(answer: Any) -> str:
    return _texts(answer["content"])


_FORMS: Mapping[str, _Form] = {
    "openai_chat": _Form(
        "/chat/completions",
        lambda key: {"Authorization": f"Bearer {key}"},
        openai_chat.user_message,
        {},
        _chat_words,
        frozenset({"image", "audio"}),
    ),
    "anthropic_messages": _Form(
        "/v1/messages",
        lambda key: {"x-api-key": key},
        anthropic_messages.user_message,
        {"max_tokens": _MOST_TOKENS},
        _anthropic_words,
        frozenset({"image"}),
    ),
}
_ANTHROPIC_VERSION = {"anthropic-version": "2023-06-01"}
"""https://docs.claude.com/en/api/versioning"""


async def describe_with_model(
    client: httpx2.AsyncClient, settings: DescribeModel, prompt: str, media: MediaWork, content: bytes, media_type: str
) -> str:
    """Return the model's description of the content, which is fitted to the API first.

    Raises:
        MediaError: the content cannot be sent, or the response is not one of such an API.
    """
    form = _FORMS[settings.api]
    kind = family(media_type)
    if kind not in form.kinds:
        raise MediaError(f"{settings.api} takes no {kind}")
    data, fitted_type = await fit_described(media, content, media_type, _IMAGE, _AUDIO)
    shown = Media(cast("MediaKind", kind), fitted_type, data, kind)
    message = form.user_message((shown, Words(prompt)))
    request = {"model": settings.model, **form.more, "messages": [message]}
    answer = await _posted(client, _address(settings, form), _headers(settings, form), request)
    try:
        return form.said(json.loads(answer))
    except (KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise MediaError(f"{plain(settings.model, 60)} answered in a form that is not {settings.api}") from error


def _address(settings: DescribeModel, form: _Form) -> str:
    url = (settings.url or "").rstrip("/")
    # Anthropic's base URL is given with or without its version.
    return url + (form.path.removeprefix("/v1") if url.endswith("/v1") else form.path)


def _headers(settings: DescribeModel, form: _Form) -> dict[str, str]:
    version = _ANTHROPIC_VERSION if settings.api == "anthropic_messages" else {}
    return {**version, **(form.headers(settings.api_key) if settings.api_key else {})}


async def _posted(
    client: httpx2.AsyncClient, address: str, headers: Mapping[str, str], request: Mapping[str, Any]
) -> bytes:
    answer = bytearray()
    try:
        async with client.stream("POST", address, headers=headers, json=request) as response:
            async for piece in response.aiter_bytes():
                answer += piece
                if len(answer) > _MOST_ANSWER:
                    raise MediaError("the model API's response is too large")
            if not response.is_success:
                why = plain(bytes(answer).decode("utf-8", "replace"), _SHOWN)
                raise MediaError(f"the model API answered {response.status_code}: {why}")
    except httpx2.HTTPError as error:
        raise MediaError(f"the model API could not be asked: {type(error).__name__}") from error
    return bytes(answer)
