"""The options of `serve --shared`. Standard library only."""

from pathlib import Path
from typing import NamedTuple


class RelayOptions(NamedTuple):
    """The configuration to share (default: the usual one), and the profile, model and toolset of this host alone."""

    config: Path | None = None
    profile: str | None = None
    model: str | None = None
    toolset: str | None = None
