"""The table of model APIs, and the interface that each API's module has.

A new API is a module beside this one, a line in `APIS`, its name in `gateway.core.profiles.model_profile.Writing`, and
a profile in `profiles/`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from gateway.core.model_apis import (
    anthropic_messages,
    bedrock_converse,
    cohere,
    gemini,
    gemini_interactions,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
from gateway.core.model_apis.completions import ToolCall
from gateway.core.model_apis.requests.request_edits import RequestApi, Target
from gateway.core.profiles.model_profile import Writing
from gateway.core.tools.catalogue.names import NameRules


class ModelApi(Target, Protocol):
    """The interface of every API's module: reading completions, and lowering turns."""

    NAMES: NameRules
    """The rules of the API for names of tools."""

    def schemas(self, tools: Sequence[Mapping[str, Any]], /) -> list[dict[str, Any]]:
        """Convert MCP tools to the form in the API's requests."""
        ...

    def tool_calls(self, completion: Any, /) -> tuple[ToolCall, ...]:
        """Return the calls that a completion asks for, in order. Raises InvalidRequest: it is not a completion."""
        ...

    def assistant_messages(self, completion: Any, /) -> list[dict[str, Any]]:
        """Return the messages of a completion for the history. Raises InvalidRequest: it is not a completion."""
        ...

    def joined(self, chunks: Iterable[Any], /) -> dict[str, Any]:
        """Join the chunks of a stream into a completion. Raises InvalidRequest: there are no chunks."""
        ...


class StrictApi(Protocol):
    """The additional interface of APIs with a strict mode."""

    def strict_schemas(self, tools: Sequence[Mapping[str, Any]], /) -> list[dict[str, Any]]:
        """Convert MCP tools for strict mode: the arguments that the model writes always fit the schema."""
        ...


APIS: Mapping[Writing, ModelApi] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic_messages": anthropic_messages,
    "gemini": gemini,
    "gemini_interactions": gemini_interactions,
    "bedrock_converse": bedrock_converse,
    "mistral": mistral,
    "cohere": cohere,
    "ollama": ollama,
}
"""Every API by its wire format; a target is a profile of one of these."""

STRICT_APIS: Mapping[Writing, StrictApi] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
}
"""The APIs with a strict mode."""

REQUEST_APIS: Mapping[str, RequestApi] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic_messages": anthropic_messages,
    "gemini": gemini,
    "ollama": ollama,
}
"""The APIs whose requests are repaired on their way to a model."""
