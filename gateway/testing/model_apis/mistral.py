"""Stand-in for Mistral's chat API.

Types: mistralai 3.7.0, `models.ToolMessage` and its chunks. Ids must have nine letters and digits (code 3280):
https://github.com/nearai/ironclaw/issues/1241. A user message must not follow a tool message directly (code 3230):
https://github.com/NousResearch/hermes-agent/issues/20154. Formats of images:
https://docs.mistral.ai/capabilities/vision.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from gateway.testing.model_apis.openai_chat import NAMED, messages_shape, reader, tools_of, uri_part
from gateway.testing.model_apis.read_request import Conversation, Dialect, Media
from gateway.testing.model_apis.rules import RASTER, answered, readable, role_runs, whole_base64
from gateway.testing.model_apis.shapes import AnyOf, Tagged

_CHUNKS = {
    "text": {"text": str},
    "image_url": {"image_url": AnyOf((str, {"url": str, "detail?": str}))},
    "document_url": {"document_url": str, "document_name?": str},
    "input_audio": {"input_audio": str},
    "file": {"file_id": str},
    "reference": {"reference_ids": [AnyOf((int, str))]},
    "thinking": {"thinking": list, "closed?": bool, "signature?": str},
}
_FUNCTION = {"name": str, "arguments": AnyOf((str, dict))}
_CALLS = [{"id": str, "type?": frozenset({"function"}), "function": _FUNCTION, "index?": int}]
_CONTENT = AnyOf((str, [Tagged(_CHUNKS)]))


def _sound(where: str, part: Mapping[str, Any], shown: bool) -> tuple[Media, ...]:
    return (Media(f"{where}.input_audio", "audio", None, part["input_audio"], shown),)


_READERS = {
    "image_url": uri_part("image", "image_url"),
    "document_url": uri_part("document", "document_url"),
    "input_audio": _sound,
}


def _nine_characters(conversation: Conversation) -> Iterable[str]:
    for message in conversation.messages:
        for ref in (*message.calls, *message.answers):
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", ref.id):
                yield f"{message.where}: Tool call id was {ref.id:.80} but must be a-z, A-Z, 0-9, with a length of 9."


def _order(conversation: Conversation) -> Iterable[str]:
    for (before, _), (role, where) in pairwise(role_runs(conversation)):
        if (before, role) in (("tool", "user"), ("user", "tool")):
            yield f"{where}: Unexpected role '{role}' after role '{before}'"
    *_, last = conversation.messages
    if last.role == "assistant" and not (last.raw or {}).get("prefix"):
        yield (f"{last.where}: Expected last role User or Tool (or Assistant with prefix True) but got assistant")


MISTRAL = Dialect(
    messages_shape(_CONTENT, _CONTENT, _CALLS),
    reader(_READERS),
    (
        answered(
            split=True,
            missing="{where}: Not the same number of function calls and responses ({ids})",
            stray="{where}: Unexpected tool call id {id} in tool results",
        ),
        _nine_characters,
        _order,
        whole_base64,
        readable(RASTER, "{where}: Image could not be loaded. Use png, jpeg, webp or a gif of one frame."),
        NAMED,
    ),
    tools_of,
)
