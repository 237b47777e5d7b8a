"""Model profiles: what a model API, and the model behind it, take in a tool's result. Data, like host profiles.

A host decides what may leave the gateway; a model API what may be sent to it. The two are kept apart.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from gateway.core.model.turn import MediaKind
from gateway.core.profiles.profile import Count, Evidence, FactSource, Rules

Place = Literal["in_tool", "follow_up", "none"]
"""Where content goes: into the tool's message, into one message after all tool messages of the turn, or nowhere."""

ImagePlace = Literal["in_tool", "follow_up", "after_reply", "none"]
"""Where images go. `after_reply`: as `follow_up`, behind a short reply of the assistant's.

Some chat templates let a user speak only after the assistant, so a message that directly follows a tool is refused.
"""

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

    place: ImagePlace = "none"
    types: tuple[str, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
    follow_up_types: tuple[str, ...] = ()
    """Types that are taken only in the follow-up, where the others go into the tool's message."""
    max_edge: Count | None = None
    max_bytes: Count | None = None
    max_count: Count | None = None
    in_tool_models: tuple[str, ...] = ()
    """Models (globs) whose images go into the tool's message, where those of the others follow."""
    after_reply_models: tuple[str, ...] = ()
    """Models (globs) whose images follow a reply of the assistant's: their chat templates want roles to alternate."""


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


class ModelRefs(Rules):
    """Content that the API fetches itself, named in a link: where it goes, schemes of its uri, kinds of media."""

    place: Place = "none"
    schemes: tuple[str, ...] = ()
    kinds: tuple[MediaKind, ...] = ()


class ModelRaw(Rules):
    """What an upstream may give as this API's own content of a tool's message, to be sent as it is.

    `form`: a list of blocks that name their kind under `type` (`typed`), or that have one member called after it
    (`keyed`); or an object with some of the members (`members`). `kinds`: for each kind what a block has to have; for
    `members` the JSON type of each.
    """

    form: Literal["typed", "keyed", "members"] = "typed"
    kinds: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])


class ModelText(Rules):
    """Text: `max_chars` of one result together."""

    max_chars: Count | None = None


class ModelMatch(Rules):
    """Which requests a profile is for: shell globs on the model's name and on the API's base url."""

    model: str | None = None
    base_url: str | None = None


class ModelSource(FactSource):
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
    blind_models: tuple[str, ...] = ()
    """Models (globs) that see no images although the API takes them."""
    image: ModelImages = ModelImages()
    audio: ModelMedia = ModelMedia()
    document: ModelMedia = ModelMedia()
    video: ModelMedia = ModelMedia()
    error: ModelErrors = ModelErrors()
    text: ModelText = ModelText()
    file: ModelRefs = ModelRefs()
    """Files that the provider of the API keeps, by id: `openai-file:file-abc`."""
    link: ModelRefs = ModelRefs()
    """Addresses that the API fetches: followed only where the caller asks for it (`links="native"`)."""
    raw: ModelRaw = ModelRaw()
    max_request_bytes: Count | None = None
    """The largest request that the API takes, where it is known."""
    evidence: Mapping[str, Evidence] = Field(default_factory=dict[str, Evidence])
