"""Turns: the results of a turn as the parts that a model API takes, each where it may stand.

Media that may not stand in a tool's message goes into ONE follow-up after ALL tool messages, because OpenAI-style APIs
refuse anything between them; a marker stays where it stood, and the same label stands before it there.
"""

from gateway.core.model_apis.turns.assemble_turn import Assembled, Choices, assemble

__all__ = ["Assembled", "Choices", "assemble"]
