"""Media in scripts: objects that stand for stored content, without its bytes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Media:
    """An image, sound or file as scripts see it: `size` in bytes, `width` and `height` in pixels where they are known.

    Tools take it as an argument.
    """

    type: str
    mime_type: str
    size: int
    width: int | None
    height: int | None
    name: str | None
    handle: str
    uri: str
