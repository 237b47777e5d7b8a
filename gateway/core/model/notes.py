"""Notes: the record of everything that was changed or lost on the way to a target, and why."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

NoteKind = Literal[
    "mended",  # broken but readable: padding, white space, a wrong or missing type
    "broken",  # could not be read; kept as it came, or named in a line
    "rescued",  # media found where it cannot be seen, made a block of its own
    "repeated",  # left out because the same content is already in the result
    "converted",  # another media type
    "resized",  # fewer pixels or fewer bytes
    "moved",  # another place in the result
    "named",  # replaced by one line of text that names it
    "cut",  # text shortened
    "raw",  # the API's own shape, given by the upstream, in place of the content
    "dropped",  # left out, with its content reachable nowhere else
    "schema",  # a tool's name, description or schema was edited
    "app",  # sent as it came, for a page of the upstream (MCP Apps)
    "failed",  # an effect did not succeed; the text says what was done instead
]


class Note(BaseModel):
    """One change: what kind, why in words, and which block of the envelope (its index), if one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: NoteKind
    text: str
    block: int | None = None
