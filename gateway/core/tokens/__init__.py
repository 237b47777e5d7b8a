"""Tokens: what texts, media and lists of tools cost a model, by an estimate and by the vendors' published formulas."""

from gateway.core.tokens.choose_formulas import formulas_for
from gateway.core.tokens.content_items import (
    Content,
    Length,
    Lengths,
    Medium,
    content_of_blocks,
    content_of_result,
    content_of_tools,
    medium_in,
    medium_of,
    read_of_structured,
    with_structured,
)
from gateway.core.tokens.count_tokens import TokenCount, count_content, list_tokens, medium_tokens
from gateway.core.tokens.estimate_text import text_tokens
from gateway.core.tokens.formula import TokenFormula
from gateway.core.tokens.token_words import token_words

__all__ = [
    "Content",
    "Length",
    "Lengths",
    "Medium",
    "TokenCount",
    "TokenFormula",
    "content_of_blocks",
    "content_of_result",
    "content_of_tools",
    "count_content",
    "formulas_for",
    "list_tokens",
    "medium_in",
    "medium_of",
    "medium_tokens",
    "read_of_structured",
    "text_tokens",
    "token_words",
    "with_structured",
]
