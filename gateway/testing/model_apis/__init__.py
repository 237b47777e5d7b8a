"""Strict stand-ins for the model APIs: they refuse what the real ones refuse, and tell what their model would see.

`refusals` and `seen` are pure. `server.model_server` answers over HTTP in every API's own form, streamed or not. The
rules come from the official SDKs' types, from the providers' pages and from error messages that users were given; each
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
"""Every stand-in by the name of its target."""


def refusals(api: str, request: Mapping[str, Any]) -> tuple[str, ...]:
    """Why the real API would refuse this request body, one sentence for each fault; empty if it is accepted.

    `request` is JSON as it travels, with all that the API asks for (`max_tokens`, `toolConfig` ...). Gemini's model,
    which travels in the address, may stand under `model`. Of a wrong shape nothing else is told.
    Raises KeyError for an API that is not in `APIS`.
    """
    dialect = APIS[api]
    request = dialect.before(request)
    if wrong := tuple(mismatches(request, dialect.shape)):
        return wrong
    read = _read(dialect, request)
    return tuple(sentence for rule in dialect.rules for sentence in rule(read))


def seen(api: str, request: Mapping[str, Any]) -> tuple[Seen, ...]:
    """The media that the model behind the API sees in this request, in order.

    What stands where the model is not shown it is left out (an image on OpenAI's `role: tool`), and so is what is only
    named by an address. Of a request whose shape is refused nothing is seen.
    """
    read = conversation(api, request)
    return tuple(one for media in read.media if (one := media.seen)) if read else ()


def conversation(api: str, request: Mapping[str, Any]) -> Conversation | None:
    """A request as its stand-in reads it; None where its shape is refused."""
    dialect = APIS[api]
    request = dialect.before(request)
    return None if any(mismatches(request, dialect.shape)) else _read(dialect, request)


def _read(dialect: Dialect, request: Mapping[str, Any]) -> Conversation:
    return Conversation(request, dialect.read(request), dialect.tools(request))
