"""Describe content with a tool of an upstream."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from gateway.content.describe.fit_for_describer import fit_described
from gateway.core.fact_words import plain
from gateway.core.model.effects import AudioTarget, ImageTarget, MediaWork
from gateway.core.model.json_values import as_list, is_dict
from gateway.errors import GatewayError, MediaError

CallTool = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Calls a tool (upstream's name, tool's own name, arguments) and returns the raw result. Raises GatewayError."""


class ToolCaller(Protocol):
    """Calls tools in the sessions of one caller, as `gateway.content.shaping.CallersTools` does."""

    @property
    def owner(self) -> str:
        """The owner of the sessions: the same for all requests of one caller."""
        ...

    @property
    def call(self) -> CallTool:
        """The function that calls a tool in these sessions."""
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
    """Call the tool, and return the text of its result.

    Raises:
        MediaError: the content cannot be converted to an image or sound that tools take, or the call failed.
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
