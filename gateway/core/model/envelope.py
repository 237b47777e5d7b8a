"""The envelope: one canonical form for a CallToolResult of any revision."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gateway.core.model.blocks import Block
from gateway.core.model.json_values import is_dict
from gateway.core.model.notes import Note

RAW_KEY = "mcp-gateway/raw"
"""The `_meta` key under which an upstream provides content in a model API's own format, by target name."""


class Envelope(BaseModel):
    """A tool result, complete and in order.

    `blocks` are the result's content. `structured_content` is any JSON value, including null, so
    `has_structured_content` says whether there was one. `is_error` is the flag as read (anything but `true` counts as
    no error). `rest` holds every other member of the result as it arrived, including `_meta` and `resultType`, and
    `isError` if it was not a boolean. `notes` record what was found wrong while reading.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: tuple[Block, ...] = ()
    structured_content: Any = None
    has_structured_content: bool = False
    is_error: bool = False
    rest: dict[str, Any] = Field(default_factory=dict[str, Any])
    notes: tuple[Note, ...] = ()

    @property
    def meta(self) -> dict[str, Any]:
        """The result's `_meta`, empty if it had none."""
        meta = self.rest.get("_meta")
        return meta if is_dict(meta) else {}

    def with_note(self, *notes: Note) -> "Envelope":
        """Return the same envelope with further notes."""
        return self.model_copy(update={"notes": (*self.notes, *notes)}) if notes else self


def envelope_json_schema() -> dict[str, Any]:
    """Return the published JSON schema of the envelope (draft 2020-12)."""
    schema = Envelope.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Envelope", **schema}
