"""Strict stand-ins for model APIs: they refuse what the real ones refuse, and report what the model would see.

`refusals` and `seen` are pure. `server.model_server` answers over HTTP in every API's own form, streamed or not. The
rules are from the official SDKs' types, the providers' documentation and error messages that users reported; each
module names its sources.
"""

from collections.abc import Mapping
from typing import Any

from gateway.testing.model_apis.anthropic_messages import ANTHROPIC_MESSAGES
from gateway.testing.model_apis.bedrock_converse import BEDROCK_CONVERSE
from gateway.testing.model_apis.cohere import COHERE
from gateway.testing.model_apis.gemini import GEMINI, GEMINI_2_5
from gateway.testing.model_apis.gemini_interactions import GEMINI_INTERACTIONS
from gateway.testing.model_apis.groq import GROQ
from gateway.testing.model_apis.mistral import MISTRAL
from gateway.testing.model_apis.ollama import OLLAMA
from gateway.testing.model_apis.openai_chat import PROFILES
from gateway.testing.model_apis.openai_responses import OPENAI_RESPONSES
from gateway.testing.model_apis.read_request import Conversation, Dialect, Seen
from gateway.testing.model_apis.shapes import mismatches

__all__ = ["APIS", "Seen", "conversation", "refusals", "seen"]

APIS: Mapping[str, Dialect] = {
    **PROFILES,
    "openai_responses": OPENAI_RESPONSES,
    "anthropic_messages": ANTHROPIC_MESSAGES,
    "gemini": GEMINI,
    "gemini_2_5": GEMINI_2_5,
    "gemini_interactions": GEMINI_INTERACTIONS,
    "bedrock_converse": BEDROCK_CONVERSE,
    "mistral": MISTRAL,
    "cohere": COHERE,
    "groq": GROQ,
    "ollama": OLLAMA,
}
"""All stand-ins by the names of their targets."""


def refusals(api: str, request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why the real API would refuse this request body, one sentence per fault; empty if it is accepted.

    `request` is wire JSON, with all that the API requires (`max_tokens`, `toolConfig` ...). Gemini's model, which is
    part of the URL, may be given as `model`. If the shape is wrong, only faults of the shape are returned. Raises
    KeyError for an API that is not in `APIS`.
    """
    dialect = APIS[api]
    request = dialect.before(request)
    if wrong := tuple(mismatches(request, dialect.shape)):
        return wrong
    read = _read(dialect, request)
    return tuple(sentence for rule in dialect.rules for sentence in rule(read))


def seen(api: str, request: Mapping[str, Any]) -> tuple[Seen, ...]:
    """Return the media that the model behind the API sees in this request, in order.

    Media in places that the model is not shown is left out (an image on OpenAI's `role: tool`), and so is media given
    only by URL. The result is empty if the request's shape is refused.
    """
    read = conversation(api, request)
    return tuple(one for media in read.media if (one := media.seen)) if read else ()


def conversation(api: str, request: Mapping[str, Any]) -> Conversation | None:
    """Parse a request as its stand-in does; None if its shape is refused."""
    dialect = APIS[api]
    request = dialect.before(request)
    return None if any(mismatches(request, dialect.shape)) else _read(dialect, request)


def _read(dialect: Dialect, request: Mapping[str, Any]) -> Conversation:
    return Conversation(request, dialect.read(request), dialect.tools(request))
