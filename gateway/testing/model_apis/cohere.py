"""Stand-in for Cohere's v2 chat: tool messages may contain only text and JSON documents.

Types: cohere 7.3.1, `ToolMessageV2`, `UserMessageV2`. Formats of images: https://docs.cohere.com/docs/image-inputs.
"""

from gateway.testing.model_apis.openai_chat import IMAGES, NAMED, PARTS, messages_shape, reader, tools_of
from gateway.testing.model_apis.read_request import Dialect
from gateway.testing.model_apis.rules import answered, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, AnyOf, Tagged

_USER = Tagged({kind: PARTS[kind] for kind in ("text", "image_url")})
_TOOL = Tagged({"text": {"text": str}, "document": {"document": {"data": AnyOf((str, dict)), **OTHERS}}})

COHERE = Dialect(
    messages_shape(AnyOf((str, [_USER])), AnyOf((str, [_TOOL]))),
    reader(),
    (
        answered(
            split=True,
            missing="{where}: invalid request: missing tool results for tool calls {ids}",
            stray="{where}: invalid request: no tool call precedes the tool result {id}",
        ),
        whole_base64,
        *IMAGES,
        NAMED,
    ),
    tools_of,
)
