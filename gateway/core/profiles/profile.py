"""Profiles: what a given host really shows its model, as data.

A profile file holds facts. Each fact carries its evidence and the values that it sets, so a value without evidence
cannot be written down. The defaults here are those of a host that shows everything (`passthrough`).
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from gateway.core.model.quantities import Duration, Size, seconds_of

Level = Literal["measured", "source", "maintainer", "user_report", "judgement", "unverified"]
"""How a fact is known. `judgement` marks a choice of ours where nothing can be known."""

Count = Annotated[int, Field(gt=0)]
Bytes = Annotated[Size, Field(gt=0)]
"""As in mcp-gateway.toml: a number, or a text as `"5MB"`. Seconds likewise, `"30s"`."""
Seconds = Annotated[Duration, Field(gt=0)]


class Rules(BaseModel):
    """What all profiles are made of: frozen tables in which unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Match(Rules):
    """Which clients a profile is for. What is given must all hold; any one Match of a profile is enough.

    `client_name` is a shell glob on the normalised clientInfo name (lower case; blanks, `_` and `/` become `-`; a
    ` (via ...)` ending is gone). `user_agent` is a regular expression, searched in the HTTP User-Agent. `model` is a
    shell glob on the name of the model behind the host, in lower case, where it is known (see `Variant`).
    `client_version` is its very clientInfo version: what was calibrated with one need not hold for the next.
    """

    client_name: str | None = None
    client_version: str | None = None
    user_agent: str | None = None
    model: str | None = None


class Evidence(Rules):
    """How a value is known: level, where it can be read again, for which host version, and when it was checked."""

    level: Level
    source: str
    host_version: str | None = None
    checked: date


class Fact(Evidence):
    """Evidence with the values that it is for: dotted paths or nested tables, as in the profile itself."""

    sets: dict[str, Any] = Field(default_factory=dict[str, Any])


class FactSource(Rules):
    """A profile file, or a `[profiles.<name>]` table: only what differs from what it extends."""

    title: str | None = None
    about: str | None = None
    extends: str | None = None
    fact: tuple[Fact, ...] = ()
    sets: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values without evidence: for users' own profiles. A test keeps this out of the built-in ones."""


class Variant(Rules):
    """A host's other face, where the model (or the model API) behind it decides what is shown.

    It becomes a profile `<host>-<name>` that extends the host's. `models` are shell globs on the model's name, in lower
    case: where the model is known (told by the host, or set as gateway.model), the variant takes the host's place.
    """

    name: Annotated[str, Field(pattern=r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")]
    title: str | None = None
    about: str | None = None
    models: tuple[str, ...] = ()
    fact: tuple[Fact, ...] = ()
    sets: dict[str, Any] = Field(default_factory=dict[str, Any])


class ProfileSource(FactSource):
    """A profile file, or a `[profiles.<name>]` table: only what differs from what it extends."""

    match: tuple[Match, ...] = ()
    variant: tuple[Variant, ...] = ()


class TextRules(Rules):
    """`max_chars`: all text of a result together. `merge`: one single text block, markers where media stood.

    `empty`: a result without content and empty text blocks are kept as they are, or `named` in a line, because the
    host fails on them or shows its model nothing at all. `beyond`: what the host itself does with longer text than it
    takes: `cut` it, save it to a `file` of which the model sees a preview, or `fail` the call.
    """

    max_chars: Count | None = None
    merge: bool = False
    empty: Literal["keep", "named"] = "keep"
    beyond: Literal["unknown", "cut", "file", "fail"] = "unknown"


class ImageRules(Rules):
    """Images.

    `show`: `native` as an image block, `line` as one line of text, `file` as a line with the path of a file that the
    host may open (a line, where it may open none). `types` that are taken (empty: all raster and vector types as they
    are); others are converted. `max_edge` in pixels, `max_bytes` decoded, `max_count` per result. `animation`: `kept`
    where the type is taken, or the `first-frame` alone. `caption`: a text line before an image that names it: `never`,
    `moved` (when it does not stand where it stood, or was changed), or `always`.
    """

    show: Literal["native", "line", "file"] = "native"
    types: tuple[str, ...] = ()
    max_edge: Count | None = None
    max_bytes: Bytes | None = None
    max_count: Count | None = None
    animation: Literal["kept", "first-frame"] = "kept"
    caption: Literal["never", "moved", "always"] = "never"


class AudioRules(Rules):
    """Sound: shown as an audio block, named in a line, or in a line with the path of a `file`.

    `types` that are taken (empty: all); others are converted. `max_bytes` decoded; `max_seconds`: longer sound is cut.
    """

    show: Literal["native", "line", "file"] = "native"
    types: tuple[str, ...] = ()
    max_bytes: Bytes | None = None
    max_seconds: Annotated[int, BeforeValidator(seconds_of), Field(gt=0)] | None = None


class DocumentRules(Rules):
    """PDF documents, embedded or rescued.

    `show`: `native` as the embedded resource that it is; `text` with a mark before each page (a document without text
    as pages, where images are shown); `pages` as images, within the image rules; `line`; or `file`, as with images.
    `max_pages`: of text or of images in one result; the line names the rest. `max_bytes`: for `native`, decoded.
    """

    show: Literal["native", "text", "pages", "line", "file"] = "native"
    max_pages: Count | None = None
    max_bytes: Bytes | None = None


class BlobRules(Rules):
    """Embedded resources with bytes that are neither image nor PDF: as they are, in a line, or as a `file`.

    `types` that are taken (empty: all). `image_as_image`: an embedded image becomes an image block; `audio_as_audio`:
    embedded sound an audio block.
    """

    show: Literal["native", "line", "file"] = "native"
    types: tuple[str, ...] = ()
    image_as_image: bool = False
    audio_as_audio: bool = False


class EmbeddedTextRules(Rules):
    """Embedded resources with text: as they are, or as a text block that begins with the uri."""

    show: Literal["native", "text"] = "native"


class LinkRules(Rules):
    """Links to resources: as they are, as one line of text, or `inline`.

    `inline`: what a link to an image or a document of its own upstream leads to is read and shown in its place, at most
    `max_count` in one result and `max_bytes` each; every other link is a line.
    """

    show: Literal["native", "line", "inline"] = "native"
    max_count: Count = 4
    max_bytes: Bytes = 10_000_000


class StructuredRules(Rules):
    """Structured content: sent `always`, or `never` (then it is text where nothing else says it, and tools lose their
    output schemas, since clients fail a call that has one without the other). `host`: what the host itself does with
    it."""

    send: Literal["always", "never"] = "always"
    host: Literal["unknown", "ignored", "if-empty", "replaces-text", "replaces-all", "beside", "dumped"] = "unknown"


class AppRules(Rules):
    """MCP Apps: pages (`ui://`) that a host shows, beside what its model is told.

    `host`: whether it shows them: as it has `declared` (the extension `io.modelcontextprotocol/ui`), `always`, because
    it shows them without declaring it, or `never`. `data`: where its pages find the data of the result that opened
    them: in the structured content, or in `text`, because the host loses structured content on the way to the page:
    then it is the first text block too. `calls`: which tools its pages can call: `any`, or only those that are
    `listed`, because the host looks a page's calls up in its list of tools: then tools that pages call are listed under
    their own names as well, for pages alone. `embedded`: whether a page inside a result (mcp-ui) goes to the host as it
    is: `with-pages`, where the host shows pages; `always`, because it shows these without showing the others; or
    `never`. Otherwise it is a line. `declares` and `shows`: whether the host is known to declare the extension, and to
    show the pages of tools to its user (both are known of the host, and left out where nothing is; `host` is the rule).
    """

    host: Literal["declared", "always", "never"] = "declared"
    declares: bool | None = None
    shows: bool | None = None
    data: Literal["structured", "text"] = "structured"
    calls: Literal["any", "listed"] = "any"
    embedded: Literal["with-pages", "always", "never"] = "with-pages"


class ErrorRules(Rules):
    """Results with `isError`.

    `media`: `keep` it beside the flag; `unflag`: send the result without the flag and with a text prefix, because the
    host drops media beside the flag; `line`: name it. `prefix`: begin the text with `ERROR:` also beside the flag.
    `max_chars`: of a failed result's text.
    """

    media: Literal["keep", "unflag", "line"] = "keep"
    prefix: bool = False
    max_chars: Count | None = None


class UnknownRules(Rules):
    """Blocks of a kind that MCP does not know (yet): as they are, or as one line of text."""

    show: Literal["native", "line"] = "native"


class ContentUrlRules(Rules):
    """Links to kept content, where the gateway has an HTTP side.

    `show`: `never`; `beside` the handle, in each line that names one; or `instead` of it, because the host's model has
    more use for an address than for a tool. Links are signed, and open the content for whoever has them.
    """

    show: Literal["never", "beside", "instead"] = "never"


class LimitRules(Rules):
    """`result_chars`: the whole result as JSON on the wire, in characters."""

    result_chars: Count | None = None


class ToolRules(Rules):
    """What a host takes of tools.

    `name_max` counts characters with the host's own prefix in it; `host_prefix` is that prefix, `{server}` standing
    for the name under which the gateway is registered. `name_chars` is the class of characters allowed in a name.
    `helpers`: whether `gateway_view` and `gateway_read` are offered. `meta` is added to the `_meta` of every tool,
    `own_meta` to that of the gateway's own tools alone. `schema_max_bytes`: of a tool's input schema as JSON. `refs`:
    `inline` where the host drops the definitions that a `$ref` points to. `root`: `object` where the host takes no
    `anyOf`, `oneOf` or `allOf` at a schema's root. `description_required`: a tool without one is given one.
    `host_files`: the host itself fills in the arguments that `openai/fileParams` names, so they stay as declared.
    """

    name_max: Count = 128
    host_prefix: str = ""
    name_chars: str = "A-Za-z0-9_.-"
    description_max: Count | None = None
    description_required: bool = False
    schema_max_bytes: Bytes | None = None
    refs: Literal["keep", "inline"] = "keep"
    root: Literal["any", "object"] = "any"
    max_tools: Count | None = None
    helpers: bool = False
    host_files: bool = False

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
    own_meta: dict[str, Any] = Field(default_factory=dict[str, Any])


class InstructionRules(Rules):
    """The instructions that a host is told when it connects.

    `max_chars`: it keeps so many, the rest is cut off. `handles`: whether they say what a handle is good for.
    """

    max_chars: Count | None = None
    handles: bool = False


class WaitRules(Rules):
    """How long is waited, in seconds.

    `tools_list`: a first tools/list for upstreams that are still starting; counted from when the request came where
    `list` is known, otherwise from when the gateway is up. `progress_every`: where the host asked for progress of a
    call and the upstream tells none for so long, progress is told in its place, because the host gives a call up that
    it hears nothing of (left out: never). `call`: how long the host waits for a tool; `start`: for the answer to its
    first message; `list`: for that to tools/list, with which `tools_list` has to be done in good time;
    `progress_resets`: whether progress makes it wait anew (all four are known of the host, and left out where nothing
    is known).
    """

    call: Seconds | None = None
    start: Seconds | None = None
    list: Seconds | None = None
    progress_resets: bool | None = None
    tools_list: Annotated[Duration, Field(ge=0, le=60)] = 5.0
    progress_every: Annotated[Seconds, Field(le=3_600)] | None = None

    def for_list(self, waited: float) -> float:
        """Seconds that a list may still wait for upstreams whose request has waited for so many already.

        A host that is known to give up soon counts from its request, whatever the imports took. Elsewhere nothing is
        won by a list that comes soon and short: some hosts never ask for another.
        """
        return self.tools_list if self.list is None else max(0.0, self.tools_list - waited)


Feature = Literal[
    "sampling", "roots", "elicitation", "tools_list_changed", "resources_list_changed", "prompts_list_changed"
]


class FeatureRules(Rules):
    """`broken`: what the host says that it can do, and cannot. It is never asked for it, nor is any upstream told."""

    broken: tuple[Feature, ...] = ()


class OutputRules(Rules):
    """For programs that read results themselves: what is put beside the content, under `_meta` of the result.

    `envelope`: the whole envelope, as `mcp-gateway/envelope`. `model_api`: the messages that show this result to that
    model API (a target of `gateway.lower_turn`, as `openai_chat`), as `mcp-gateway/model-api`.
    """

    envelope: bool = False
    model_api: str | None = None


class Profile(Rules):
    """A profile with everything resolved: `values` of all that it extends, merged, and the evidence of each."""

    name: str
    title: str = ""
    about: str = ""
    match: tuple[Match, ...] = ()
    lineage: tuple[str, ...] = ()
    """What it extends, nearest first."""
    variants: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """The profiles that take its place, each with the models for which it does (see `Variant`)."""
    order: Literal["kept", "text-first"] = "kept"
    """`text-first`: the host (or this profile) shows text before media; markers say where the media stood."""
    rescue: bool = False
    """Whether media is looked for in text and structured content."""
    handles: Literal["hidden", "useful", "always"] = "hidden"
    """What is kept and named by its handle: only what is not shown as it came, or all media too (`always`, or `useful`:
    where a tool is offered that takes content, so that the model can pass it on). Where a client loses images that it
    was given, their handles let the model proxy put them back: `always`.
    """
    audience: Literal["ignore", "respect"] = "ignore"
    shown: Literal["same-turn", "next-turn", "unknown"] = "unknown"
    """When the model sees an image: with the result, or only after the user's next message."""
    text: TextRules = TextRules()
    image: ImageRules = ImageRules()
    audio: AudioRules = AudioRules()
    document: DocumentRules = DocumentRules()
    blob: BlobRules = BlobRules()
    embedded_text: EmbeddedTextRules = EmbeddedTextRules()
    link: LinkRules = LinkRules()
    unknown: UnknownRules = UnknownRules()
    structured: StructuredRules = StructuredRules()
    apps: AppRules = AppRules()
    error: ErrorRules = ErrorRules()
    content_url: ContentUrlRules = ContentUrlRules()
    limits: LimitRules = LimitRules()
    tools: ToolRules = ToolRules()
    instructions: InstructionRules = InstructionRules()
    wait: WaitRules = WaitRules()
    features: FeatureRules = FeatureRules()
    output: OutputRules = OutputRules()
    evidence: Mapping[str, Evidence] = Field(default_factory=dict[str, Evidence])
    """For each dotted path that some fact sets: how it is known."""
