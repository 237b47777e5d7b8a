"""Model profiles: what a model API, and the model behind it, take in a tool's result. Data, like host profiles.

A host decides what may leave the gateway; a model API what may be sent to it. The two are kept apart.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from gateway.core.model.profile import Count, Evidence, Rules, Source

Place = Literal["in_tool", "follow_up", "none"]
"""Where content goes: into the tool's message, into one message after all tool messages of the turn, or nowhere."""

Writing = Literal[
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini",
    "gemini_interactions",
    "bedrock_converse",
    "mistral",
    "cohere",
    "ollama",
]
"""The wire forms, one converter each; every target is a profile of one of them."""


class ModelImages(Rules):
    """Images: where they go, the types that are taken, limits in pixels, decoded bytes, and count per turn."""

    place: Place = "none"
    types: tuple[str, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
    follow_up_types: tuple[str, ...] = ()
    """Types that are taken only in the follow-up, where the others go into the tool's message."""
    max_edge: Count | None = None
    max_bytes: Count | None = None
    max_count: Count | None = None


class ModelMedia(Rules):
    """Sound, documents or video: where they go and the types that are taken."""

    place: Place = "none"
    types: tuple[str, ...] = ()
    max_count: Count | None = None


class ModelErrors(Rules):
    """Failed calls. `flag`: the API has one; else the text begins with `ERROR:`.

    `text_only`: beside the flag the tool's message may hold nothing but text, so media goes into the follow-up.
    """

    flag: bool = False
    text_only: bool = False


class ModelText(Rules):
    """Text: `max_chars` of one result together."""

    max_chars: Count | None = None


class ModelMatch(Rules):
    """Which requests a profile is for: shell globs on the model's name and on the API's base url."""

    model: str | None = None
    base_url: str | None = None


class ModelSource(Source):
    """A model profile's file: only what differs from what it extends."""

    match: tuple[ModelMatch, ...] = ()


class ModelProfile(Rules):
    """A model profile with everything resolved, and the evidence of each value."""

    name: str
    title: str = ""
    about: str = ""
    match: tuple[ModelMatch, ...] = ()
    lineage: tuple[str, ...] = ()
    writing: Writing = "openai_chat"
    vision: bool = True
    """Whether the model sees images at all; without, it gets lines that name them."""
    image: ModelImages = ModelImages()
    audio: ModelMedia = ModelMedia()
    document: ModelMedia = ModelMedia()
    video: ModelMedia = ModelMedia()
    error: ModelErrors = ModelErrors()
    text: ModelText = ModelText()
    evidence: Mapping[str, Evidence] = Field(default_factory=dict[str, Evidence])
