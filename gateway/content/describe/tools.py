"""A tool of an upstream that describes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from gateway.content.describe.fit_for_describer import fit_described
from gateway.core.model.effects import AudioTarget, ImageTarget, MediaWork
from gateway.core.model.json_values import as_list, is_dict
from gateway.core.wording import plain
from gateway.errors import GatewayError, MediaError

CallTool = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Calls a tool of an upstream (its name, the tool's own name, arguments): the raw result. Raises GatewayError."""


class ToolCaller(Protocol):
    """Calls tools in the sessions of one caller (`gateway.content.shaping.CallersTools` is one)."""

    @property
    def owner(self) -> str:
        """Whose sessions: equal for all requests of one caller."""
        ...

    @property
    def call(self) -> CallTool:
        """Calls a tool there."""
        ...


_IMAGE = ImageTarget(("image/png", "image/jpeg"), max_edge=2_000, animation=False)
_AUDIO = AudioTarget(("audio/wav", "audio/mpeg"))
_PLACE = re.compile(r"\{(uri|data|type|prompt)\}")
_SHOWN = 200


async def describe_with_tool(
    call: CallTool,
    tool: str,
    arguments: Mapping[str, str],
    prompt: str,
    media: MediaWork,
    content: bytes,
    media_type: str,
) -> str:
    """The text of the tool's result.

    Raises:
        MediaError: the content cannot be made an image or sound that tools take, or the call failed.
    """
    upstream, _, name = tool.partition("__")
    data, fitted_type = await fit_described(media, content, media_type, _IMAGE, _AUDIO)
    values = {"uri": f"data:{fitted_type};base64,{data}", "data": data, "type": fitted_type, "prompt": prompt}
    filled = {key: _PLACE.sub(lambda match: values[match[1]], value) for key, value in arguments.items()}
    try:
        result = await call(upstream, name, filled)
    except GatewayError as error:
        raise MediaError(f"{plain(tool, 100)}: {error.message}") from error
    said = _text(result.get("content"))
    if result.get("isError") is True:
        raise MediaError(f"{plain(tool, 100)} failed: {plain(said, _SHOWN)}")
    return said


def _text(content: Any) -> str:
    blocks = as_list(content)
    texts = [block.get("text") for block in blocks if is_dict(block)]
    return "\n".join(text for text in texts if isinstance(text, str))
