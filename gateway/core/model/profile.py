"""Profiles: what a given host really shows its model, as data.

A profile file holds facts. Each fact carries its evidence and the values that it sets, so a value without evidence
cannot be written down. The defaults here are those of a host that shows everything (`passthrough`).
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Level = Literal["measured", "source", "maintainer", "user_report", "judgement", "unverified"]
"""How a fact is known. `judgement` marks a choice of ours where nothing can be known."""

Count = Annotated[int, Field(gt=0)]


class Rules(BaseModel):
    """What all profiles are made of: frozen tables in which unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Match(Rules):
    """Which clients a profile is for. What is given must all hold; any one Match of a profile is enough.

    `client_name` is a shell glob on the normalised clientInfo name (lower case; blanks, `_` and `/` become `-`; a
    ` (via ...)` ending is gone). `user_agent` is a regular expression, searched in the HTTP User-Agent.
    """

    client_name: str | None = None
    user_agent: str | None = None


class Evidence(Rules):
    """How a value is known: level, where it can be read again, for which host version, and when it was checked."""

    level: Level
    source: str
    host_version: str | None = None
    checked: date


class Fact(Evidence):
    """Evidence with the values that it is for: dotted paths or nested tables, as in the profile itself."""

    sets: dict[str, Any] = Field(default_factory=dict[str, Any])


class Source(Rules):
    """A profile file, or a `[profiles.<name>]` table: only what differs from what it extends."""

    title: str | None = None
    about: str | None = None
    extends: str | None = None
    fact: tuple[Fact, ...] = ()
    sets: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values without evidence: for users' own profiles. A test keeps this out of the built-in ones."""


class ProfileSource(Source):
    """A profile file, or a `[profiles.<name>]` table: only what differs from what it extends."""

    match: tuple[Match, ...] = ()


class TextRules(Rules):
    """`max_chars`: all text of a result together. `merge`: one single text block, markers where media stood.

    `empty`: a result without content and empty text blocks are kept as they are, or `named` in a line, because the
    host fails on them or shows its model nothing at all.
    """

    max_chars: Count | None = None
    merge: bool = False
    empty: Literal["keep", "named"] = "keep"


class ImageRules(Rules):
    """Images.

    `show`: `native` as an image block, or `line` as one line of text. `types` that are taken (empty: all raster and
    vector types as they are); others are converted. `max_edge` in pixels, `max_bytes` decoded, `max_count` per result.
    `caption`: a text line before an image that names it: `never`, `moved` (when it does not stand where it stood, or
    was changed), or `always`.
    """

    show: Literal["native", "line"] = "native"
    types: tuple[str, ...] = ()
    max_edge: Count | None = None
    max_bytes: Count | None = None
    max_count: Count | None = None
    caption: Literal["never", "moved", "always"] = "never"


class AudioRules(Rules):
    """Sound: shown as an audio block or named in a line. `types` empty: all."""

    show: Literal["native", "line"] = "native"
    types: tuple[str, ...] = ()


class BlobRules(Rules):
    """Embedded resources with bytes that are no image: shown as they are, or named in a line. `types` empty: all.

    `image_as_image`: an embedded image becomes an image block.
    """

    show: Literal["native", "line"] = "native"
    types: tuple[str, ...] = ()
    image_as_image: bool = False


class EmbeddedTextRules(Rules):
    """Embedded resources with text: as they are, or as a text block that begins with the uri."""

    show: Literal["native", "text"] = "native"


class LinkRules(Rules):
    """Links to resources: as they are, or as one line of text."""

    show: Literal["native", "line"] = "native"


class StructuredRules(Rules):
    """Structured content: sent `always`, or `never` (then it is text where nothing else says it, and tools lose their
    output schemas, since clients fail a call that has one without the other)."""

    send: Literal["always", "never"] = "always"


class ErrorRules(Rules):
    """Results with `isError`.

    `media`: `keep` it beside the flag; `unflag`: send the result without the flag and with a text prefix, because the
    host drops media beside the flag; `line`: name it. `prefix`: begin the text with `ERROR:` also beside the flag.
    """

    media: Literal["keep", "unflag", "line"] = "keep"
    prefix: bool = False


class UnknownRules(Rules):
    """Blocks of a kind that MCP does not know (yet): as they are, or as one line of text."""

    show: Literal["native", "line"] = "native"


class LimitRules(Rules):
    """`result_chars`: the whole result as JSON on the wire, in characters."""

    result_chars: Count | None = None


class ToolRules(Rules):
    """What a host takes of tools.

    `name_max` counts characters with the host's own prefix in it; `host_prefix` is that prefix, `{server}` standing
    for the name under which the gateway is registered. `name_chars` is the class of characters allowed in a name.
    `helpers`: whether `gateway_view` and `gateway_read` are offered. `meta` is added to the `_meta` of every tool.
    """

    name_max: Count = 128
    host_prefix: str = ""
    name_chars: str = "A-Za-z0-9_.-"
    description_max: Count | None = None
    max_tools: Count | None = None
    helpers: bool = False

    @field_validator("name_chars")
    @classmethod
    def _is_a_class(cls, chars: str) -> str:
        try:
            re.compile(f"[{chars}]")
        except re.error as error:
            raise ValueError(f"no class of characters: {error}") from None
        if not re.fullmatch(f"[{chars}]+", "az09_"):
            raise ValueError("small letters, digits and _ have to be allowed")
        return chars

    meta: dict[str, Any] = Field(default_factory=dict[str, Any])


class InstructionRules(Rules):
    """What a host keeps of the instructions that it is told when it connects: `max_chars`, the rest is cut off."""

    max_chars: Count | None = None


class WaitRules(Rules):
    """How long is waited, in seconds.

    `tools_list`: a first tools/list for upstreams that are still starting. `progress_every`: where the host asked for
    progress of a call and the upstream tells none for so long, progress is told in its place, because the host gives a
    call up that it hears nothing of (left out: never).
    """

    tools_list: Annotated[float, Field(ge=0, le=60)] = 5.0
    progress_every: Annotated[float, Field(gt=0, le=3_600)] | None = None


class Profile(Rules):
    """A profile with everything resolved: `values` of all that it extends, merged, and the evidence of each."""

    name: str
    title: str = ""
    about: str = ""
    match: tuple[Match, ...] = ()
    lineage: tuple[str, ...] = ()
    """What it extends, nearest first."""
    order: Literal["kept", "text-first"] = "kept"
    """`text-first`: the host (or this profile) shows text before media; markers say where the media stood."""
    rescue: bool = False
    """Whether media is looked for in text and structured content."""
    audience: Literal["ignore", "respect"] = "ignore"
    shown: Literal["same-turn", "next-turn", "unknown"] = "unknown"
    """When the model sees an image: with the result, or only after the user's next message."""
    text: TextRules = TextRules()
    image: ImageRules = ImageRules()
    audio: AudioRules = AudioRules()
    blob: BlobRules = BlobRules()
    embedded_text: EmbeddedTextRules = EmbeddedTextRules()
    link: LinkRules = LinkRules()
    unknown: UnknownRules = UnknownRules()
    structured: StructuredRules = StructuredRules()
    error: ErrorRules = ErrorRules()
    limits: LimitRules = LimitRules()
    tools: ToolRules = ToolRules()
    instructions: InstructionRules = InstructionRules()
    wait: WaitRules = WaitRules()
    evidence: Mapping[str, Evidence] = Field(default_factory=dict[str, Evidence])
    """For each dotted path that some fact sets: how it is known."""
