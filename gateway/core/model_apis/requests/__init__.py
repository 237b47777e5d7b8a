"""Requests of model APIs: the tool results in them are found, and what they are lowered to is put in their place.

One module for each dialect. Everything else in a request stays as it is.
"""

from collections.abc import Mapping

from gateway.core.model_apis.requests import anthropic_messages, gemini, ollama, openai_chat, openai_responses
from gateway.core.model_apis.requests.found_results import Dialect, FoundTurn, Piece, RepairedTurn
from gateway.core.model_apis.requests.splice_results import splice

DIALECTS: Mapping[str, Dialect] = {
    "openai_chat": openai_chat.DIALECT,
    "openai_responses": openai_responses.DIALECT,
    "anthropic_messages": anthropic_messages.DIALECT,
    "gemini": gemini.DIALECT,
    "ollama": ollama.DIALECT,
}

__all__ = ["DIALECTS", "Dialect", "FoundTurn", "Piece", "RepairedTurn", "splice"]
