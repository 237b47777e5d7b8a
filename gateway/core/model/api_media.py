"""Find media in messages of any model API without knowing which API it is."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import is_list, is_object

_TYPES = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "audio_url", "video_url", "file", "input_file"}
    | {"document", "media"}
)
_KEYS = ("inlineData", "inline_data", "fileData", "file_data")
_BEDROCK = ("image", "document", "video", "audio")
_DEEPEST = 60


def holds_media(value: Any, depth: int = 0) -> bool:
    """Whether a value contains media in a model API's form or in MCP's."""
    if depth > _DEEPEST:
        return False
    if is_list(value):
        return any(holds_media(item, depth + 1) for item in value)
    if not is_object(value):
        return False
    kind = value.get("type")
    if (isinstance(kind, str) and kind in _TYPES) or any(key in value for key in _KEYS) or value.get("images"):
        return True
    if any(_has_source(value.get(key)) for key in _BEDROCK):
        return True
    return any(holds_media(member, depth + 1) for member in value.values())


def _has_source(value: Any) -> bool:
    """Whether a value is a media source of Bedrock's Converse API: a format and the place that the data comes from."""
    return isinstance(value, Mapping) and "source" in value and "format" in value


def media_near(messages: Sequence[Any], also: Collection[int] = ()) -> list[bool]:
    """For each message, whether it or another one before the model's next message has media, which may be a result's.

    `also` lists messages that are known to have media in another form.
    """
    shown = [False] * len(messages)
    following = False
    for index in reversed(range(len(messages))):
        following = following or index in also or holds_media(messages[index])
        shown[index] = following
        following = following and not _is_of_model(messages[index])
    return shown


def _is_of_model(message: Any) -> bool:
    if not is_object(message):
        return False
    return message.get("role") in ("assistant", "model") or message.get("type") in ("function_call", "model_output")
