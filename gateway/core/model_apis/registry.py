"""The one table of model APIs, and what the module of each has.

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
    """What the module of every API has: its completions are read, and turns are lowered to it."""

    NAMES: NameRules
    """The names that the API takes for tools."""

    def schemas(self, tools: Sequence[Mapping[str, Any]], /) -> list[dict[str, Any]]:
        """MCP tools as the API's requests take them."""
        ...

    def tool_calls(self, completion: Any, /) -> tuple[ToolCall, ...]:
        """The calls that a completion asks for, in order. Raises InvalidRequest: it is not a completion."""
        ...

    def assistant_messages(self, completion: Any, /) -> list[dict[str, Any]]:
        """What of a completion goes back into the history. Raises InvalidRequest: it is not a completion."""
        ...

    def joined(self, chunks: Iterable[Any], /) -> dict[str, Any]:
        """The completion that the chunks of a stream come to. Raises InvalidRequest: there are none."""
        ...


class StrictApi(Protocol):
    """What the module of an API with a strict mode has beside that."""

    def strict_schemas(self, tools: Sequence[Mapping[str, Any]], /) -> list[dict[str, Any]]:
        """MCP tools as strict mode takes them: the arguments that come back always fit the schema."""
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
"""Every API by its wire form; a target is a profile of one of these."""

STRICT_APIS: Mapping[Writing, StrictApi] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
}
"""Those that have a strict mode."""

REQUEST_APIS: Mapping[str, RequestApi] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic_messages": anthropic_messages,
    "gemini": gemini,
    "ollama": ollama,
}
"""Those whose requests are repaired on their way to a model."""
