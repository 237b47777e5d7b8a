"""What is known of a tool when rules decide about it."""

from typing import NamedTuple


class Hints(NamedTuple):
    """What annotations claim. The defaults are those of a tool without any: it may destroy anything, anywhere."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


class ToolFacts(NamedTuple):
    """A tool to decide about: its upstream, its own name there, and what its annotations claim."""

    upstream: str
    tool: str
    hints: Hints = Hints()
