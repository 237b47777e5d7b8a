"""The lines of a recording: one JSON object each, written by the recorder and read by the replay.

A session file begins with a `Header`; each `ConnectionLine` introduces a connection to an upstream, and each `Exchange`
is one request on a connection and what became of it. docs/record-and-replay.md describes the format.
"""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gateway.errors import Failure, FailureCode, UpstreamError, UpstreamRefused

FORMAT = "mcp-gateway recording"
VERSION = 1
"""The version of the format of a recording. It grows when a gateway that does not know it cannot read one."""

SESSION_FILES = "session-*.jsonl"
MEDIA = "media"
"""The folder with the content of the recording, each file named by its SHA-256."""

LONGEST_LINE = 16 * 1024 * 1024
"""Maximum bytes of a line; what is longer is in a file of its own."""

OPENING = frozenset({"initialize", "server/discover"})
"""The requests of a negotiation."""
CONNECT = "connect"
"""In place of a method: the attempt to open a connection."""

LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})


class Line(BaseModel):
    """A line: frozen, and unknown members are errors, since a recording is meant to be edited."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def text(self) -> str:
        """Return the line without its end, with what is not set left out."""
        return json_text(self.model_dump(exclude_defaults=True))


class Header(Line):
    """The first line of a session file."""

    format: Literal["mcp-gateway recording"]
    version: int
    gateway: str = ""
    """The version of the gateway that wrote it."""
    started: str = ""
    """When, in UTC."""


class ConnectionLine(Line):
    """A connection to an upstream, introduced before its first exchange."""

    connection: int
    upstream: str
    transport: str = "stdio"
    capabilities: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The capabilities of the host that it was opened for: servers list other tools for other hosts."""


class RefusalPart(Line):
    """A JSON-RPC error of an upstream."""

    code: int
    message: str
    data: Any = None


class FailurePart(Line):
    """A failure without an answer: the error that the call ended with."""

    kind: str
    code: str
    message: str
    remedy: str | None = None

    @classmethod
    def of(cls, failure: Failure) -> "FailurePart":
        """Return the part for a failure."""
        return cls(kind=failure.kind.__name__, code=failure.code.value, message=failure.message, remedy=failure.remedy)

    def error(self, upstream: str) -> UpstreamError:
        """Return the error to raise again."""
        kinds = {one.__name__: one for one in _kinds(UpstreamError) if one is not UpstreamRefused}
        codes = {one.value: one for one in FailureCode}
        kind = kinds.get(self.kind, UpstreamError)
        failure = Failure(kind, codes.get(self.code, FailureCode.UNKNOWN), self.message, self.remedy)
        return kind(upstream, self.message, remedy=self.remedy, failure=failure)


class Exchange(Line):
    """One request on a connection: answered with a result, refused, failed, or cancelled by the host."""

    connection: int
    method: str
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    result: dict[str, Any] | None = None
    error: RefusalPart | None = None
    failure: FailurePart | None = None
    cancelled: bool = False
    asked: list[str] = Field(default_factory=list[str])
    """The requests of the upstream to the host while this one ran; a replay does not ask again."""

    @model_validator(mode="after")
    def _has_one_outcome(self) -> "Exchange":
        outcomes = (self.result is not None, self.error is not None, self.failure is not None, self.cancelled)
        if sum(outcomes) != 1:
            raise ValueError("an exchange has one of result, error, failure and cancelled")
        return self

    @property
    def name(self) -> str | None:
        """The tool or prompt that the request names, or the URI."""
        found = self.params.get("name", self.params.get("uri"))
        return found if isinstance(found, str) else None


class StoppedLine(Line):
    """The last line of a session that was not recorded to its end."""

    stopped: str


def json_text(value: Any) -> str:
    """Return JSON on one line, with half surrogate pairs as escapes. Members keep their order."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or _is_writable(text) else json.dumps(value)


def _is_writable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _kinds(kind: type[UpstreamError]) -> list[type[UpstreamError]]:
    return [kind, *(one for below in kind.__subclasses__() for one in _kinds(below))]
