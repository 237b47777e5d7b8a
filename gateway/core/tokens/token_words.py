"""Counts of tokens in words, for people."""

from gateway.core.fact_words import counted
from gateway.core.tokens.count_tokens import TokenCount


def token_words(count: TokenCount) -> str:
    """Format a count: `about 1,240 tokens, 840 of them for images, and 1 medium of unknown cost`."""
    words = [f"about {counted(count.total, 'token')}"]
    kinds = ((count.images, "images"), (count.others, "other media"))
    words += [f"{tokens:,} of them for {what}" for tokens, what in kinds if tokens]
    if count.guessed:
        words.append(f"the length of {count.guessed:,} guessed from {'its' if count.guessed == 1 else 'their'} bytes")
    if count.unknown:
        words.append(f"and {count.unknown:,} {'medium' if count.unknown == 1 else 'media'} of unknown cost")
    return ", ".join(words)
