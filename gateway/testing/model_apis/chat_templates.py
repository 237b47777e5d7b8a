"""Rules of chat templates, which make servers of open models refuse some orders of roles or images in tool results.

Ministral 3 and Devstral Small 2 (2512). llama-server renders the model's own chat_template.jinja
(https://github.com/anomalyco/opencode/issues/5034); vLLM reads requests with mistral-common, here as up to 1.11.0
(https://github.com/mistralai/mistral-common/issues/169, `MistralRequestValidator._validate_message_order`).
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import pairwise

from gateway.testing.model_apis.read_request import Conversation, Rule

ALTERNATION = (
    "After the optional system message, conversation roles must alternate user and assistant roles except for tool "
    "calls and results."
)
_MODELS = ("*ministral-3-*", "*devstral-small-2-*")


def _of_mistral(rule: Rule) -> Rule:
    """Restrict a rule to these models."""

    def for_them(conversation: Conversation) -> Iterable[str]:
        model = conversation.model.lower()
        return rule(conversation) if any(fnmatchcase(model, glob) for glob in _MODELS) else ()

    return for_them


@_of_mistral
def alternating(conversation: Conversation) -> Iterable[str]:
    """User and assistant messages must alternate, not counting messages with tool calls, and their results."""
    spoken = [
        message.role
        for message in conversation.messages
        if message.role == "user" or (message.role == "assistant" and not message.calls)
    ]
    if any((role == "user") != (number % 2 == 0) for number, role in enumerate(spoken)):
        yield ALTERNATION


@_of_mistral
def answered_first(conversation: Conversation) -> Iterable[str]:
    """There must be an assistant message between a tool's and a user's."""
    roles = [message.role for message in conversation.messages]
    if ("tool", "user") in pairwise(roles):
        yield "Unexpected role 'user' after role 'tool'"


@_of_mistral
def tools_write(conversation: Conversation) -> Iterable[str]:
    """A tool's message must contain only text."""
    if any(message.media for message in conversation.messages if message.role == "tool"):
        yield "Unexpected content chunk types in tool message: ['ImageURLChunk']"
