"""Model profiles: what a model API, and the model behind it, accept in a tool's result. Data, like host profiles.

A host profile decides what may leave the gateway; a model profile what may be sent to a model API. The two are
separate.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from gateway.core.model.turn import MediaKind
from gateway.core.profiles.profile import Count, Evidence, FactSource, Rules

Place = Literal["in_tool", "follow_up", "none"]
"""Where content is placed: in the tool's message, in one message after all tool messages of the turn, or nowhere."""

ImagePlace = Literal["in_tool", "follow_up", "after_reply", "none"]
"""Where images are placed. `after_reply`: like `follow_up`, but after a short reply of the assistant.

Some chat templates allow a user message only after the assistant's, so one that directly follows a tool is refused.
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
"""The wire formats, each with a converter of its own; every target is a profile of one of them."""


class ModelImages(Rules):
    """Images: their place, the accepted types, limits in pixels, decoded bytes, and count per turn."""

    place: ImagePlace = "none"
    types: tuple[str, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
    follow_up_types: tuple[str, ...] = ()
    """Types that are accepted only in the follow-up, while the others go into the tool's message."""
    max_edge: Count | None = None
    max_bytes: Count | None = None
    max_count: Count | None = None
    in_tool_models: tuple[str, ...] = ()
    """Models (globs) that accept images in the tool's message, while those of the other models follow."""
    after_reply_models: tuple[str, ...] = ()
    """Models (globs) whose images follow a reply of the assistant: their chat templates require alternating roles."""


class ModelMedia(Rules):
    """Sound, documents or video: their place and the accepted types."""

    place: Place = "none"
    types: tuple[str, ...] = ()
    max_count: Count | None = None


class ModelErrors(Rules):
    """Failed calls. `flag`: the API has an error flag; otherwise the text begins with `ERROR:`.

    `text_only`: with the flag, the tool's message may hold only text, so media goes into the follow-up.
    """

    flag: bool = False
    text_only: bool = False


class ModelRefs(Rules):
    """Content named in a link that the API fetches itself: its place, URI schemes, and kinds of media."""

    place: Place = "none"
    schemes: tuple[str, ...] = ()
    kinds: tuple[MediaKind, ...] = ()


class ModelRaw(Rules):
    """Content for a tool's message that an upstream may provide in this API's own form, to be sent unchanged.

    `form`: a list of blocks with their kind under `type` (`typed`) or with one member named after the kind (`keyed`);
    or an object with some of the members (`members`). `kinds`: the members that a block of each kind must have; for
    `members`, the JSON type of each.
    """

    form: Literal["typed", "keyed", "members"] = "typed"
    kinds: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])


class ModelText(Rules):
    """Text: `max_chars` of one result in total."""

    max_chars: Count | None = None


class ModelTokens(Rules):
    """The formulas (docs/tokens.md) of the models behind the API; empty if it serves any, or nothing is known."""

    formulas: tuple[str, ...] = ()


class ModelMatch(Rules):
    """The requests that a profile is for: shell globs on the model's name and on the API's base url."""

    model: str | None = None
    base_url: str | None = None


class ModelSource(FactSource):
    """A model profile's file: only the differences from the profile that it extends."""

    match: tuple[ModelMatch, ...] = ()


class ModelProfile(Rules):
    """A fully resolved model profile, with the evidence for each value."""

    name: str
    title: str = ""
    about: str = ""
    match: tuple[ModelMatch, ...] = ()
    lineage: tuple[str, ...] = ()
    writing: Writing = "openai_chat"
    vision: bool = True
    """Whether the model sees images at all; if not, it gets lines that name them."""
    blind_models: tuple[str, ...] = ()
    """Models (globs) that do not see images although the API accepts them."""
    image: ModelImages = ModelImages()
    audio: ModelMedia = ModelMedia()
    document: ModelMedia = ModelMedia()
    video: ModelMedia = ModelMedia()
    error: ModelErrors = ModelErrors()
    text: ModelText = ModelText()
    tokens: ModelTokens = ModelTokens()
    file: ModelRefs = ModelRefs()
    """Files stored by the provider of the API, by id: `openai-file:file-abc`."""
    link: ModelRefs = ModelRefs()
    """Addresses that the API fetches: used only if the caller asks for it (`links="native"`)."""
    raw: ModelRaw = ModelRaw()
    max_request_bytes: Count | None = None
    """The largest request that the API accepts, if known."""
    evidence: Mapping[str, Evidence] = Field(default_factory=dict[str, Evidence])
