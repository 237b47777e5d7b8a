"""Stand-in for Groq: OpenAI's form, with images allowed in tool messages, and documents only as JSON.

Types: groq 1.7.0, `types.chat`: a tool message has text, image_url and document parts. A part with an unknown member is
answered with 400, "property ... is unsupported".
"""

from gateway.testing.model_apis.openai_chat import RULES, messages_shape, reader, tools_of
from gateway.testing.model_apis.read_request import Dialect
from gateway.testing.model_apis.shapes import OTHERS, AnyOf, Tagged

_PARTS = {
    "text": {"text": str},
    "image_url": {"image_url": {"url": str, "detail?": frozenset({"auto", "low", "high"})}},
    "document": {"document": {"data": dict, **OTHERS}},
}
_CONTENT = AnyOf((str, [Tagged(_PARTS)]))

GROQ = Dialect(messages_shape(_CONTENT, _CONTENT), reader(), RULES, tools_of)
