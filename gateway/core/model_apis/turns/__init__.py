"""Turns: the results of a turn as parts for a model API, each where the API allows it.

Media that is not allowed in a tool's message goes into ONE follow-up after ALL tool messages, because OpenAI-style APIs
refuse anything between them; a marker stays in its place, and the same label precedes it in the follow-up.
"""

from gateway.core.model_apis.turns.assemble_turn import Assembled, Choices, assemble

__all__ = ["Assembled", "Choices", "assemble"]
