"""The schema of mcp-gateway.toml: what may be written in it, with its defaults.

Reading files and the environment is `gateway.config.load_settings`; nothing here touches either.
"""

import ipaddress
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gateway.config.locations import location
from gateway.core.model.json_values import is_dict
from gateway.core.model.quantities import Duration, Size
from gateway.core.profiles.profile import ProfileSource

Seconds = Annotated[Duration, Field(gt=0, le=86_400)]
Bytes = Annotated[Size, Field(gt=0)]
BytesOrNone = Annotated[Size, Field(ge=0)]
"""0 means something else than a number of bytes."""
Transport = Literal["stdio", "http", "sse", "auto"]
PrefixRule = Literal["always", "when-needed", "never"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

OWN_NAME = "gateway"
"""The name of the gateway's own tools; no upstream may have it."""

UPSTREAM_NAME = r"^[A-Za-z0-9]+(?:(?:-+|_)[A-Za-z0-9]+)*$"
"""Letters, digits, `-` and single `_`: so that `<upstream>__<tool>` splits in one way only."""
UPSTREAM_NAME_LENGTH = 40
"""The most characters of such a name."""

SESSION = r"^(shared|host-session|client|principal|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$"
"""Who may own an upstream's state."""

BASE_URL = r"^https?://[^\s/?#@]+(?:/[^\s?#]*)?$"
"""An address that others are below: no user, no query."""

ROOT_PATH = r"^(/[A-Za-z0-9._~-]+)*$"

ALLOWED_URL = r"https?://(?:\*\.)?(?:[^\s/?#@:*\[\]]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s?#]*)?"
"""A scheme, a host (or everything below one), a port, and a path in which `*` is any text."""


class Section(BaseModel):
    """A table of the file: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Timeouts(Section):
    """Limits in seconds: `start` and `install` until it is ready, `call` for a whole call, `idle` without progress."""

    start: Seconds = 30.0
    """Until the upstream is ready: process started, handshake done, tools listed."""
    install: Seconds = 600.0
    """The same while a launcher (`npx`, `uvx`, `docker run`, ...) is at work, which may have to install it first."""
    call: Seconds = 300.0
    """For a whole call, whatever progress it reports."""
    idle: Seconds = 120.0
    """Without any message about the call; progress starts it anew."""
    answer: Seconds = 600.0
    """For the host, and the person in front of it, to answer what the upstream asks during a call."""


class UpstreamLimits(Section):
    """What one upstream may use; 0 is no limit."""

    calls: Annotated[int, Field(ge=0)] = 100
    """Calls that run at once; others wait for their turn, in order, as long as their own limit allows."""
    memory: BytesOrNone = 0
    """Bytes of RAM for its process and all below it (Linux, macOS); over it, it is stopped until the next call."""
    list_bytes: BytesOrNone = 16 * 1024 * 1024
    """Bytes of RAM for all that it lists (tools, resources, templates, prompts); what is beyond is left out."""
    restarts: Annotated[int, Field(ge=0)] = 100
    """Starts after the first within an hour; over it, it is started again by a call, or when the hour has passed."""


class ToolTimeouts(Section):
    """The same limits for one tool; what is left out is the upstream's."""

    call: Seconds | None = None
    """For a whole call of this tool."""
    idle: Seconds | None = None
    """Without any message about the call."""


class ContentArgument(Section):
    """An argument that takes content, where its schema does not say so: `"image"` alone is `{ kind = "image" }`."""

    kind: Literal["image", "audio", "video", "document", "3d", "cad", "other", "any"] | None = None
    """What it takes; left out: what its schema says, else any."""
    form: Literal["base64", "data-uri", "path", "url", "object"] | None = Field(default=None, alias="as")
    """How the tool wants it; left out: as its schema says, else base64. A path only where the server has a command."""

    @model_validator(mode="before")
    @classmethod
    def _of_a_kind(cls, given: Any) -> Any:
        return {"kind": given} if isinstance(given, str) else given


class ToolsSettings(Section):
    """Which of an upstream's tools are offered, and how. Patterns are shell globs on the upstream's own names."""

    include: tuple[str, ...] = ("*",)
    """Tools that are offered."""
    exclude: tuple[str, ...] = ()
    """Tools that are not, though included."""
    rename: dict[str, str] = Field(default_factory=dict[str, str])
    """Another name for a tool: `{ its_name = "new_name" }`."""
    describe: dict[str, str] = Field(default_factory=dict[str, str])
    """Another description for a tool."""
    timeout: dict[str, ToolTimeouts] = Field(default_factory=dict[str, ToolTimeouts])
    """Other limits for a tool."""
    content: dict[str, dict[str, ContentArgument]] = Field(default_factory=dict[str, dict[str, ContentArgument]])
    """Arguments that take content, by tool and path: `{ analyze = { "items[].photo" = "image" } }`. Also written as
    `[upstreams.NAME.tools.TOOL.content]`."""

    @model_validator(mode="before")
    @classmethod
    def _by_tool(cls, given: Any) -> Any:
        if not is_dict(given):
            return given
        named = {name for name, table in given.items() if name not in cls.model_fields and _is_content(table)}
        listed: Any = given.get("content", {})
        if not named or not is_dict(listed):
            return given
        content = listed | {name: given[name]["content"] for name in named}
        return {name: table for name, table in given.items() if name not in named} | {"content": content}


def _is_content(table: Any) -> bool:
    return is_dict(table) and set(table) == {"content"}


class UpstreamSettings(Section):
    """One upstream MCP server: either `command` (started over stdio) or `url` (Streamable HTTP or SSE)."""

    command: str | None = None
    """The program that is started: a name on the PATH, or a path (relative to the file)."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Its environment, beside the few variables that every program needs."""
    cwd: Path | None = None
    """The folder that it is started in, relative to the file."""
    url: str | None = None
    """The address of a server that runs already."""
    transport: Transport = "auto"
    """How to speak to it; `auto` is stdio for a command, and for a url Streamable HTTP, else SSE."""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """HTTP headers that are sent to the url with every request."""
    timeout: Timeouts = Timeouts()
    limits: UpstreamLimits = UpstreamLimits()
    tools: ToolsSettings = ToolsSettings()
    session: Annotated[str, Field(pattern=SESSION)] | None = None
    """Whose its state is (a browser, a login): `shared`, `host-session`, `client`, `principal` or `header:NAME`.

    Left out: a host's session; its principal, name and profile where it has none.
    """
    session_idle: Seconds = 3_600.0
    """Seconds without a call after which a session of its own, that a host was given, is closed."""
    max_sessions: Annotated[int, Field(ge=1, le=10_000)] = 32
    """How many sessions of their own hosts may have at once."""
    idle_stop: Annotated[Duration, Field(ge=0, le=86_400)] = 0.0
    """Seconds without a call after which it is stopped, until the next one; its tools stay listed. 0: never."""
    files: tuple[Path, ...] = ()
    """Folders whose media, where its text names a file in them, is shown as content: a saved PDF, a screenshot."""
    accept: Literal["any", "own", "none"] = "any"
    """Which kept content its tools may be given: `own` is what came from itself or from the host, not from others."""
    enabled: bool = True
    """Whether it is connected at all."""
    max_message_bytes: Bytes = 64 * 1024 * 1024
    """The largest JSON-RPC message that is read from this upstream."""

    @model_validator(mode="after")
    def _one_way_in(self) -> "UpstreamSettings":
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command (a program to start) or url (a server to connect to)")
        if self.command is not None and self.transport not in ("auto", "stdio"):
            raise ValueError(f"transport {self.transport!r} needs a url, but command is given")
        if self.url is not None and self.transport == "stdio":
            raise ValueError("transport 'stdio' needs a command, but url is given")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://")
        return self

    @model_validator(mode="after")
    def _paths_mean_something(self) -> "UpstreamSettings":
        forms = {argument.form for arguments in self.tools.content.values() for argument in arguments.values()}
        if self.command is None and "path" in forms:
            raise ValueError('as = "path" needs a command: only a program on this machine can open a file of ours')
        return self


class GatewaySettings(Section):
    """How the gateway presents itself."""

    name: str = "mcp-gateway"
    """What the gateway calls itself towards hosts."""
    prefix: PrefixRule = "always"
    """Whether tools are offered as `<upstream>__<tool>`; `when-needed`: only where names collide."""
    profile: str | None = None
    """The profile for every host, whatever it says it is."""
    model: Annotated[str, Field(min_length=1)] | None = None
    """The model behind the hosts, where it decides what is shown (`gpt-5.5`); left out: as a host tells it."""
    instructions: str | None = None
    """What hosts are told about the gateway as a whole."""
    public_url: Annotated[str, Field(pattern=BASE_URL)] | None = None
    """Where others reach the gateway's HTTP side, as `https://gateway.example.com/mcp-gateway`: the base of links."""
    root_path: Annotated[str, Field(pattern=ROOT_PATH)] = ""
    """The path below which a reverse proxy serves the gateway, as `/mcp-gateway`, whether or not it takes it off."""


class HttpSettings(Section):
    """The HTTP side of `serve --http`."""

    bind: str = "127.0.0.1"
    """The address that is listened on; any but a loopback one needs a token."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8484
    """The port; 0 takes a free one."""
    token: str | None = None
    """The bearer token that hosts must send; `$MCP_GATEWAY_TOKEN` gives it too."""
    allowed_hosts: tuple[str, ...] = ()
    """Names, beside the loopback ones and `bind`, under which the gateway may be called (Host header)."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins, beside the loopback ones, that may call the gateway (Origin header)."""
    max_request_bytes: Bytes = 16 * 1024 * 1024
    """The largest request that is read from a host; on stdio, the longest line."""
    request_timeout: Seconds = 20.0
    """Seconds for the headers of a request, and again for its body, which gets one more for each 500 bytes."""
    max_connections: Annotated[int, Field(ge=8)] = 1_000
    """Connections that are open at once; never more than three eighths of the files that the process may open."""
    max_connections_per_address: Annotated[int, Field(ge=8)] = 200
    """The same for one address, but not for the loopback and for `trusted_proxies`."""
    max_unread_bytes: Bytes = 64 * 1024 * 1024
    """What may wait for a host that does not read the stream of its answers; beyond it, the stream is ended."""
    session_idle: Seconds = 1_800.0
    """Seconds without any request or open stream after which a host's session is forgotten."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of reverse proxies whose `Forwarded` and `X-Forwarded-*` headers make links."""

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for place, proxy in enumerate(proxies, start=1):
            try:
                ipaddress.ip_network(proxy, strict=False)
            except ValueError:
                raise ValueError(f"entry {place} is neither an address nor a network, as 10.0.0.0/8") from None
        return proxies


class HistorySettings(Section):
    """How much media of a conversation's tool results goes on to a model API; what does not becomes a line."""

    results: Annotated[int, Field(ge=0)] = 20
    """The newest results with media that go on in full: at least so many, fewer than twice as many. 0: all."""
    bytes: BytesOrNone = 20_000_000
    """At most so many bytes of media together. 0: whatever the API takes."""


class ModelProxySettings(Section):
    """The proxy in front of a model API, which puts media in tool results where the model sees it."""

    to: str | None = None
    """The base url of the model API, as `https://api.openai.com/v1`; left out: `serve` runs no proxy."""
    bind: str = "127.0.0.1"
    """The address that is listened on; any but a loopback one needs a token."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8485
    """The port; 0 takes a free one."""
    token: str | None = None
    """What clients must send as `X-MCP-Gateway-Token`; their Authorization header belongs to the model API."""
    profile: str | None = None
    """The model profile; left out: chosen by the base url and the model's name."""
    allowed_hosts: tuple[str, ...] = ()
    """Names, beside the loopback ones and `bind`, under which the proxy may be called (Host header)."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins, beside the loopback ones, that may call the proxy (Origin header)."""
    max_request_bytes: Bytes = 64 * 1024 * 1024
    """The largest request that is taken from a client."""
    timeout: Seconds = 600.0
    """Seconds without a byte from the model API."""
    upload_above: BytesOrNone = 0
    """Media of more bytes goes once to the provider's own files, with the key in the environment. 0: never."""
    reinject: bool = True
    """Content that a line of the gateway's own names by its handle is put back where the line stands."""
    history: HistorySettings = HistorySettings()

    @field_validator("to")
    @classmethod
    def _is_address(cls, to: str | None) -> str | None:
        if to is not None and not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", to):
            raise ValueError("give the base url of the model API: http:// or https://, no user, no query")
        return to

    @field_validator("token")
    @classmethod
    def _is_no_blank(cls, token: str | None) -> str | None:
        if token is not None and not token.strip():
            raise ValueError("is empty: leave it out, or give one that cannot be guessed")
        return token


class StoreSettings(Section):
    """Where content that a host cannot show is kept."""

    url: str = "memory://"
    """`memory://`, `file:///folder`, `s3://bucket/prefix?endpoint=...&region=...`, `gs://...` or `az://...`."""
    max_bytes: Bytes = 256 * 1024 * 1024
    """For all content together; the least recently used makes way."""
    max_bytes_per_owner: Bytes | None = None
    """For the content of one principal; its own least recently used makes way."""
    expires: Annotated[Duration, Field(gt=0, le=366 * 86_400)] = 3_600.0
    """How many seconds content is kept after it was last stored."""
    timeout: Seconds = 30.0
    """Seconds for one answer of the store, or for one piece of a stream."""
    key: str | None = None
    """What handles are made with, the same for all gateways on one store; without it one is made and kept there."""

    @field_validator("url")
    @classmethod
    def _is_a_place(cls, url: str) -> str:
        location(url)
        return url

    @field_validator("key")
    @classmethod
    def _cannot_be_guessed(cls, key: str | None) -> str | None:
        if key is not None and len(key.strip()) < 16:
            raise ValueError("is too short: give 16 characters or more that cannot be guessed, or leave it out")
        return key


class ContentSettings(Section):
    """How content comes in, and how it is handed out over HTTP."""

    key: Annotated[str, Field(min_length=16)] | None = None
    """Signs links, at least 16 characters; left out: made once, and kept for this user."""
    link_lifetime: Annotated[Duration, Field(gt=0, le=31_536_000)] = 3_600.0
    """Seconds for which a link can be opened, at least; up to a quarter more, so that equal links stay equal."""
    max_upload_bytes: Bytes = 1024 * 1024 * 1024
    """The largest upload that is taken."""
    folders: tuple[Path, ...] = ()
    """Folders whose files `gateway_put` may take in by their path, links followed; relative to the file."""


class FetchSettings(Section):
    """Which URLs the gateway fetches itself; none, unless some are allowed."""

    allow: tuple[str, ...] = ()
    """What may be fetched, as `https://images.example.com/public/*` or `https://*.example.com`; `*` in a path is any
    text."""
    allow_private: tuple[str, ...] = ()
    """Hosts, as `127.0.0.1:9000` or `minio.lan`, that are allowed and may be at private addresses."""
    max_bytes: Bytes = 64 * 1024 * 1024
    """The largest content that is fetched."""
    timeout: Seconds = 60.0
    """Seconds for a whole fetch."""
    idle: Seconds = 15.0
    """Seconds without a byte, for a name to be resolved, and for a connection."""
    redirects: Annotated[int, Field(ge=0, le=20)] = 5
    """How many redirects are followed, each allowed by the same rules."""

    @field_validator("allow")
    @classmethod
    def _are_patterns(cls, allow: tuple[str, ...]) -> tuple[str, ...]:
        for place, pattern in enumerate(allow, start=1):
            if not re.fullmatch(ALLOWED_URL, pattern):
                raise ValueError(f"entry {place} is not a pattern, as https://images.example.com/public/*")
        return allow


class MediaSettings(Section):
    """Limits on what is done to images and documents."""

    workers: Annotated[int, Field(ge=1, le=64)] = 2
    """How many jobs run at once, each in a process of its own. One more runs for a caller who has none among them."""
    timeout: Seconds = 20.0
    """Seconds for one job; then its process is killed."""
    result_timeout: Seconds = 60.0
    """Seconds of all jobs of one result together, waiting for a process not counted; what is left is not tried."""
    max_pixels: Annotated[int, Field(gt=0)] = 60_000_000
    """The most pixels of an image that is decoded, read from its header beforehand."""
    max_input_bytes: Bytes = 64 * 1024 * 1024
    """The largest image, document or sound that is decoded."""
    memory_bytes: Bytes = 1024 * 1024 * 1024
    """Memory of one worker process, where the platform can limit it."""


DescribedKind = Literal["image", "audio"]


class DescribeModel(Section):
    """A model API that describes: an OpenAI-compatible one (`openai_chat`) or Anthropic's (`anthropic_messages`)."""

    api: Literal["openai_chat", "anthropic_messages"] = "openai_chat"
    """The form of its requests."""
    url: str | None = None
    """Its base url, as `https://api.openai.com/v1` or `https://api.anthropic.com`; left out: none is asked."""
    model: str = ""
    """The model's name."""
    api_key: str | None = None
    """The key, as `${OPENAI_API_KEY}`; it is sent to the url only."""

    @model_validator(mode="after")
    def _can_be_asked(self) -> "DescribeModel":
        if self.url is None:
            return self
        if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", self.url):
            raise ValueError("give the base url of the model API: http:// or https://, no user, no query")
        if not self.model:
            raise ValueError("name the model")
        return self


class DescribeSettings(Section):
    """Descriptions in words of images and sounds, for hosts and models that cannot take them. Off until one is named.

    Either `command`, or `tool`, or the `url` of a `model`: content is sent to it that tools returned.
    """

    command: tuple[str, ...] = ()
    """A program and its arguments: bytes on stdin, their type in `$MCP_GATEWAY_MEDIA_TYPE`, the words on stdout."""
    tool: str | None = None
    """A tool of an upstream, as `<upstream>__<tool>`, whose text is the description."""
    arguments: dict[str, str] = Field(default_factory=lambda: {"image": "{uri}"})
    """Its arguments: `{uri}` is a data URI, `{data}` the base64, `{type}` the media type, `{prompt}` the prompt."""
    model: DescribeModel = DescribeModel()
    kinds: tuple[DescribedKind, ...] = ("image",)
    """What is described: `image`, `audio`."""
    prompt: str = "Describe this precisely for someone who cannot perceive it. Quote all text in it. No introduction."
    """What a model is asked."""
    timeout: Seconds = 30.0
    """Seconds for one description."""
    max_chars: Annotated[int, Field(ge=40, le=100_000)] = 2_000
    """The longest description; more is cut."""
    at_once: Annotated[int, Field(ge=1, le=64)] = 2
    """How many are made at once."""
    remembered: Annotated[int, Field(ge=0, le=100_000)] = 1_000
    """How many descriptions are kept in mind, by content."""

    @model_validator(mode="after")
    def _one_way(self) -> "DescribeSettings":
        if sum(map(bool, (self.command, self.tool, self.model.url))) > 1:
            raise ValueError("give one of command, tool and model.url")
        if self.tool is not None and "__" not in self.tool.strip("_"):
            raise ValueError("give tool as <upstream>__<tool>")
        return self


class FilesSettings(Section):
    """Files for hosts that cannot show content but can open files: for profiles that show it as `file`.

    Off until `dir` or `roots` is set: such content is a line with its handle then, and with them one with the path too.
    """

    dir: Path | None = None
    """The folder that they are written to, relative to the file; it is made if need be, for this user only."""
    roots: bool = False
    """Whether they go into a folder `.mcp-gateway` in the host's own workspace (its first root), where it tells one."""
    expires: Seconds = 3_600.0
    """Seconds after which a file is removed; at the end of the gateway all are."""
    max_bytes: Bytes = 256 * 1024 * 1024
    """For all files together; the oldest make way."""


class LimitSettings(Section):
    """Limits on results, and on content in arguments."""

    result_bytes: Bytes = 64 * 1024 * 1024
    """The largest result that is taken from an upstream; larger ones are an error naming the size."""
    blocks: Annotated[int, Field(gt=0)] = 1_000
    """The most content blocks of one result."""
    argument_bytes: Bytes = 32 * 1024 * 1024
    """The largest content that an argument may name, unless the tool is given a link to it."""
    call_bytes: Bytes = 64 * 1024 * 1024
    """The same for all arguments of one call together."""


class LoggingSettings(Section):
    """What `serve` writes to stderr about what it does."""

    format: LogFormat = "text"
    """Lines for people, or a JSON object a line for machines."""
    level: LogLevel = "info"
    """The least that is logged; `info` has one line for each call."""
    levels: dict[str, LogLevel] = Field(default_factory=dict[str, LogLevel])
    """Another level for a part of the gateway: `{ upstream = "debug", telemetry = "warning" }`."""
    content: bool = False
    """Whether each call's line shows its arguments and result, shortened; base64 and secrets never."""

    @field_validator("levels")
    @classmethod
    def _parts_exist(cls, levels: dict[str, LogLevel]) -> dict[str, LogLevel]:
        for name in levels:
            if not name.isidentifier() or find_spec(f"gateway.{name}") is None:
                raise ValueError(f"the gateway has no part called {name!r}: name one of its packages, as 'upstream'")
        return levels


class Settings(Section):
    """The whole file."""

    gateway: GatewaySettings = GatewaySettings()
    http: HttpSettings = HttpSettings()
    model_proxy: ModelProxySettings = ModelProxySettings()
    store: StoreSettings = StoreSettings()
    content: ContentSettings = ContentSettings()
    fetch: FetchSettings = FetchSettings()
    media: MediaSettings = MediaSettings()
    describe: DescribeSettings = DescribeSettings()
    files: FilesSettings = FilesSettings()
    limits: LimitSettings = LimitSettings()
    logging: LoggingSettings = LoggingSettings()
    upstreams: dict[Annotated[str, Field(pattern=UPSTREAM_NAME, max_length=UPSTREAM_NAME_LENGTH)], UpstreamSettings] = (
        Field(default_factory=dict[str, UpstreamSettings])
    )
    profiles: dict[str, ProfileSource] = Field(default_factory=dict[str, ProfileSource])
    """A user's own host profiles, in the schema of the built-in ones."""

    @field_validator("upstreams")
    @classmethod
    def _own_name_is_free(cls, upstreams: dict[str, UpstreamSettings]) -> dict[str, UpstreamSettings]:
        if OWN_NAME in upstreams:
            raise ValueError(f"the name {OWN_NAME!r} is the gateway's own: give the upstream another")
        return upstreams
