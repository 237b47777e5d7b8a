"""Profiles: what a host really shows its model, as data.

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
"""How a fact is known. `judgement` marks our own choice if nothing can be known."""

Count = Annotated[int, Field(gt=0)]
Bytes = Annotated[Size, Field(gt=0)]
"""Bytes as in mcp-gateway.toml: a number, or a text such as `"5MB"`. Seconds likewise, `"30s"`."""
Seconds = Annotated[Duration, Field(gt=0)]


class Rules(BaseModel):
    """Base class of all profile tables: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Match(Rules):
    """The clients that a profile is for. All given fields must match; one matching Match of a profile is enough.

    `client_name` is a shell glob on the normalised clientInfo name (lower case; blanks, `_` and `/` become `-`; a `
    (via ...)` suffix is removed). `user_agent` is a regular expression, searched for in the HTTP User-Agent. `model` is
    a shell glob on the lower-case name of the model behind the host, if known (see `Variant`). `client_version` is the
    exact clientInfo version: a calibration with one need not hold for the next. `header` is a shell glob on the names
    of the HTTP request's headers, in lower case: some hosts are told by a header of their own alone.
    """

    client_name: str | None = None
    client_version: str | None = None
    user_agent: str | None = None
    model: str | None = None
    header: str | None = None


class Evidence(Rules):
    """How a value is known: its level, where to read it again, for which host version, and when it was checked."""

    level: Level
    source: str
    host_version: str | None = None
    checked: date


class Fact(Evidence):
    """Evidence with its values: dotted paths or nested tables, as in the profile itself."""

    sets: dict[str, Any] = Field(default_factory=dict[str, Any])


class FactSource(Rules):
    """A profile file, or a `[profiles.<name>]` table: only the differences from what it extends."""

    title: str | None = None
    about: str | None = None
    extends: str | None = None
    fact: tuple[Fact, ...] = ()
    sets: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values without evidence, for users' own profiles. A test keeps this out of the built-in ones."""


class Variant(Rules):
    """A variant of a host's profile, for hosts whose model (or model API) decides what is shown.

    It becomes a profile `<host>-<name>` that extends the host's. `models` are shell globs on the model's lower-case
    name: if the model is known (from the host, or set as gateway.model), the variant replaces the host's profile.
    """

    name: Annotated[str, Field(pattern=r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")]
    title: str | None = None
    about: str | None = None
    models: tuple[str, ...] = ()
    fact: tuple[Fact, ...] = ()
    sets: dict[str, Any] = Field(default_factory=dict[str, Any])


class ProfileSource(FactSource):
    """A profile file, or a `[profiles.<name>]` table: only the differences from what it extends."""

    match: tuple[Match, ...] = ()
    variant: tuple[Variant, ...] = ()


class TextRules(Rules):
    """`max_chars`: all text of a result in total. `merge`: one single text block, with markers in place of media.

    `empty`: a result without content and empty text blocks are kept as they are, or `named` in a line, because the host
    fails on them or shows its model nothing at all. `beyond`: what the host itself does with text over its limit: `cut`
    it, save it to a `file` of which the model sees a preview, or `fail` the call.
    """

    max_chars: Count | None = None
    merge: bool = False
    empty: Literal["keep", "named"] = "keep"
    beyond: Literal["unknown", "cut", "file", "fail"] = "unknown"


class ImageRules(Rules):
    """Images.

    `show`: `native` as an image block, `line` as one line of text, `file` as a line with the path of a file that the
    host can open (a plain line if it can open none). `types`: accepted types (empty: all raster and vector types);
    others are converted. `max_edge` in pixels, `max_bytes` decoded, `max_count` per result. `animation`: `kept` if the
    type is accepted, or only the `first-frame`. `caption`: a text line before an image that names it: `never`, `moved`
    (if it was moved or changed), or `always`.
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

    `types`: accepted types (empty: all); others are converted. `max_bytes` decoded; `max_seconds`: longer sound is cut.
    """

    show: Literal["native", "line", "file"] = "native"
    types: tuple[str, ...] = ()
    max_bytes: Bytes | None = None
    max_seconds: Annotated[int, BeforeValidator(seconds_of), Field(gt=0)] | None = None


class DocumentRules(Rules):
    """PDF documents, embedded or rescued.

    `show`: `native` as the embedded resource that it is; `text` with a mark before each page (a document without text
    as pages, if images are shown); `pages` as images, within the image rules; `line`; or `file`, as with images.
    `max_pages`: of text or of images in one result; the line names the rest. `max_bytes`: for `native`, decoded.
    """

    show: Literal["native", "text", "pages", "line", "file"] = "native"
    max_pages: Count | None = None
    max_bytes: Bytes | None = None


class BlobRules(Rules):
    """Embedded resources with bytes that are not an image or PDF: unchanged, in a line, or as a `file`.

    `types`: accepted types (empty: all). `image_as_image`: an embedded image becomes an image block; `audio_as_audio`:
    embedded sound becomes an audio block.
    """

    show: Literal["native", "line", "file"] = "native"
    types: tuple[str, ...] = ()
    image_as_image: bool = False
    audio_as_audio: bool = False


class EmbeddedTextRules(Rules):
    """Embedded resources with text: unchanged, or as a text block that begins with the URI."""

    show: Literal["native", "text"] = "native"


class LinkRules(Rules):
    """Links to resources: unchanged, as one line of text, or `inline`.

    `inline`: a link to an image or a document of its own upstream is replaced by the content, at most `max_count` in
    one result and `max_bytes` each; any other link becomes a line.
    """

    show: Literal["native", "line", "inline"] = "native"
    max_count: Count = 4
    max_bytes: Bytes = 10_000_000


class StructuredRules(Rules):
    """Structured content: sent `always`, or `never`.

    If it is not sent, it becomes text unless something else says the same, and tools lose their output schemas, since
    clients fail a call that has one without the other. `host`: what the host itself does with it. What is sent as such
    is cut to its shape, where the tool's output schema accepts that, if it is longer than `max_chars` (as compact
    JSON), than its part of the whole result (`limits.result_chars`), or, where the model reads it, than its budget.
    """

    send: Literal["always", "never"] = "always"
    max_chars: Count | None = None
    host: Literal["unknown", "ignored", "if-empty", "replaces-text", "replaces-all", "beside", "dumped"] = "unknown"

    @property
    def is_read_with_text(self) -> bool:
        """Whether the host's model reads it beside the text, which can say what was left out of it."""
        return self.host in ("beside", "dumped")


class AppRules(Rules):
    """MCP Apps: pages (`ui://`) that a host shows in addition to what its model reads.

    `host`: whether it shows them: as it has `declared` (the extension `io.modelcontextprotocol/ui`), `always`, because
    it shows them without declaring it, or `never`. `data`: where its pages find the data of the result that opened
    them: in the structured content, or in `text`, because the host loses structured content on the way to the page:
    then it is the first text block too. `calls`: which tools its pages can call: `any`, or only those that are
    `listed`, because the host looks a page's calls up in its list of tools: then tools that pages call are listed under
    their own names as well, for pages alone. `embedded`: whether a page inside a result (mcp-ui) goes to the host as it
    is: `with-pages`, where the host shows pages; `always`, because it shows these without showing the others; or
    `never`. Otherwise it is a line. `declares` and `shows`: whether the host is known to declare the extension, and to
    show the pages of tools to its user (both are known of the host, and left out where nothing is; `host` is the rule).
    `sessions`: in which sessions it is known to show them. What it is known to let a page do: `loads_domains`, load
    from the domains that it declares (`_meta.ui.csp`); `runs_eval`, run code that it makes from text (`eval`,
    WebAssembly); `runs_data`, run scripts that it brings as `data:`; `grants`, use those permissions if it asks for
    them.
    """

    host: Literal["declared", "always", "never"] = "declared"
    declares: bool | None = None
    shows: bool | None = None
    sessions: Literal["all", "some"] | None = None
    loads_domains: bool | None = None
    runs_eval: bool | None = None
    runs_data: bool | None = None
    grants: tuple[Literal["camera", "clipboardWrite", "geolocation", "microphone"], ...] | None = None
    data: Literal["structured", "text"] = "structured"
    calls: Literal["any", "listed"] = "any"
    embedded: Literal["with-pages", "always", "never"] = "with-pages"


class ErrorRules(Rules):
    """Results with `isError`.

    `media`: `keep` it beside the flag; `unflag`: send the result without the flag and with a text prefix, because the
    host drops media beside the flag; `line`: name it. `prefix`: begin the text with `ERROR:` even with the flag.
    `max_chars`: of a failed result's text.
    """

    media: Literal["keep", "unflag", "line"] = "keep"
    prefix: bool = False
    max_chars: Count | None = None


class UnknownRules(Rules):
    """Blocks of a kind that MCP does not know (yet): unchanged, or as one line of text."""

    show: Literal["native", "line"] = "native"


class ContentUrlRules(Rules):
    """Links to stored content, if the gateway is served over HTTP.

    `show`: `never`; `beside` the handle, in each line that names one; or `instead` of it, because an address is more
    useful to the host's model than a tool. Links are signed, and open the content for anybody who has them.
    """

    show: Literal["never", "beside", "instead"] = "never"


class LimitRules(Rules):
    """`result_chars`: the whole result as JSON on the wire, in characters."""

    result_chars: Count | None = None


class TokenRules(Rules):
    """What results cost the model behind a host, in tokens.

    `formulas`: the formulas (docs/tokens.md) of the models that the host uses, the most likely one first; empty if it
    uses any, or nothing is known. `max_result`: of one result, text and media together; what exceeds it is cut, scaled
    down, or named in a line.
    """

    formulas: tuple[str, ...] = ()
    max_result: Count | None = None


class ToolRules(Rules):
    """A host's limits and requirements for tools.

    `name_max` counts characters including the host's own prefix; `host_prefix` is that prefix, with `{server}` for the
    name under which the gateway is registered. `name_chars` is the class of characters allowed in a name. `helpers`:
    whether `gateway_view` and `gateway_read` are offered. `meta` is added to the `_meta` of every tool, `own_meta` only
    to that of the gateway's own tools. `schema_max_bytes`: of a tool's input schema as JSON. `refs`: `inline` if the
    host drops the definitions that a `$ref` points to. `root`: `object` if the host accepts no `anyOf`, `oneOf` or
    `allOf` at a schema's root. `description_required`: a tool without a description gets one. `host_files`: the host
    itself fills in the arguments that `openai/fileParams` names, so they stay as declared. `search`: whether its tools
    are found by searching, in place of `[tool_search] mode`: `never` for a host that searches them itself.
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
    search: Literal["never", "auto", "always"] | None = None

    @field_validator("name_chars")
    @classmethod
    def _is_a_class(cls, chars: str) -> str:
        try:
            re.compile(f"[{chars}]")
        except re.error as error:
            raise ValueError(f"not a class of characters: {error}") from None
        if not re.fullmatch(f"[{chars}]+", "az09_"):
            raise ValueError("lower-case letters, digits and _ must be allowed")
        return chars

    meta: dict[str, Any] = Field(default_factory=dict[str, Any])
    own_meta: dict[str, Any] = Field(default_factory=dict[str, Any])


class InstructionRules(Rules):
    """The instructions that a host receives when it connects.

    `max_chars`: the characters that it keeps; the rest is cut off. `handles`: whether they explain handles.
    """

    max_chars: Count | None = None
    handles: bool = False


_MARGIN = 10.0
"""Seconds before the limit of a host at which a call is answered."""


class WaitRules(Rules):
    """Waiting times, in seconds.

    `tools_list`: maximum delay of the first tools/list for upstreams that are still starting, counted from the request
    if `list` is known, and otherwise from the start of the gateway. `progress_every`: if the host asked for progress of
    a call and the upstream reports none for this long, the gateway reports progress itself, because the host would give
    up the call (omitted: never). `call`: how long the host waits for a tool; `start`: for the answer to its first
    message; `list`: for the answer to tools/list, which limits `tools_list`; `progress_resets`: whether progress
    restarts its timeout (all four are facts about the host, and omitted if unknown).
    """

    call: Seconds | None = None
    start: Seconds | None = None
    list: Seconds | None = None
    progress_resets: bool | None = None
    tools_list: Annotated[Duration, Field(ge=0, le=60)] = 5.0
    progress_every: Annotated[Seconds, Field(le=3_600)] | None = None

    @property
    def early_answer(self) -> float | None:
        """The seconds after which a call has to be answered, done or not; None if the host is not known to give up.

        That is ten seconds before the host gives up whatever progress it gets, or a third of a shorter limit.
        """
        if self.call is None or self.progress_resets is not False:
            return None
        return self.call - min(_MARGIN, self.call / 3)

    def for_list(self, waited: float) -> float:
        """Return the seconds that a list may still wait for upstreams after its request has waited this long.

        For a host that is known to give up soon, the time counts from its request, however long the imports took. For
        others, an early, short list is no advantage: some hosts never ask for another.
        """
        return self.tools_list if self.list is None else max(0.0, self.tools_list - waited)


Feature = Literal[
    "sampling", "roots", "elicitation", "tools_list_changed", "resources_list_changed", "prompts_list_changed"
]


class FeatureRules(Rules):
    """`broken`: features that the host declares but that do not work, so neither the gateway nor upstreams use them."""

    broken: tuple[Feature, ...] = ()


class OutputRules(Rules):
    """Additional output under `_meta` of the result, for programs that read results themselves.

    `envelope`: the whole envelope, as `mcp-gateway/envelope`. `model_api`: the messages that show this result to that
    model API (a target of `gateway.lower_turn`, such as `openai_chat`), as `mcp-gateway/model-api`.
    """

    envelope: bool = False
    model_api: str | None = None


class Profile(Rules):
    """A fully resolved profile: the merged values of all that it extends, and the evidence for each."""

    name: str
    title: str = ""
    about: str = ""
    match: tuple[Match, ...] = ()
    lineage: tuple[str, ...] = ()
    """The profiles that it extends, nearest first."""
    variants: Mapping[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """The variants that replace it, each with the models for which they do (see `Variant`)."""
    order: Literal["kept", "text-first"] = "kept"
    """`text-first`: the host (or this profile) shows text before media; markers show the original places of media."""
    rescue: bool = False
    """Whether media is searched for in text and structured content."""
    handles: Literal["hidden", "useful", "always"] = "hidden"
    """Which content is stored and named by its handle.

    `hidden`: only content that is not shown as it came; `always`: all media too; `useful`: the same, if a tool is
    offered that takes content, so that the model can pass it on. If a client loses images that it was given, their
    handles let the model proxy put them back: `always`.
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
    tokens: TokenRules = TokenRules()
    tools: ToolRules = ToolRules()
    instructions: InstructionRules = InstructionRules()
    wait: WaitRules = WaitRules()
    features: FeatureRules = FeatureRules()
    output: OutputRules = OutputRules()
    evidence: Mapping[str, Evidence] = Field(default_factory=dict[str, Evidence])
    """The evidence for each dotted path that a fact sets."""
