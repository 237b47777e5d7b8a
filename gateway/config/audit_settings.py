"""The audit trail's settings: `[audit]`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Size

ArgumentRule = Literal["none", "hash", "full"]


class AuditSettings(Section):
    """The audit trail: a line of JSON for each request, chained by hashes. Off until `path` is set.

    `mcp-gateway audit verify` finds lines that were changed, removed or cut off.
    """

    path: Path | None = None
    """The file, relative to this one; further gateways with the same path write to `NAME-2`, `NAME-3` and so on."""
    arguments: ArgumentRule = "hash"
    """What is written of a call's arguments: nothing, their SHA-256, or also themselves, with secrets masked."""
    tools: dict[str, ArgumentRule] = Field(default_factory=dict[str, ArgumentRule])
    """The same for some tools, by shell globs on `upstream__tool`: `{ "github__*" = "full" }`; the first that fits."""
    max_bytes: Annotated[Size, Field(ge=4_096)] = 64 * 1024 * 1024
    """Size of the file above which another one is begun; one is also begun each day (UTC)."""
    keep: Annotated[int, Field(ge=0)] = 30
    """Maximum number of earlier files that are kept. 0: all."""
    otlp: bool = False
    """Whether each line is also sent as an OpenTelemetry log record (extra `otel`, `OTEL_EXPORTER_OTLP_ENDPOINT`)."""
    on_failure: Literal["refuse", "warn"] = "refuse"
    """What happens while nothing can be written, such as on a full disk: requests are refused, or the log warns."""
