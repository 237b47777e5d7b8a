"""The difference that a change makes to a file of the user's, as lines that can be shown."""

from pathlib import Path

from gateway.config.mask_toml import masked_configuration
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets
from gateway.hosts.config_files.register_gateway import unified

_MOST_LINES = 2_000
_KINDS = {"+": "added", "-": "removed", "@": "place"}


def shown_difference(settings: Settings, before: str, after: str, file: Path | None) -> list[dict[str, str]]:
    """Return the lines of a unified diff, secrets masked, each with its `kind`: added, removed, place or same."""
    known = tuple(all_secrets(settings))
    old, new = masked_configuration(before, known), masked_configuration(after, known)
    lines = unified(old, new, file or Path("new")).splitlines()[2:]
    return [{"kind": _KINDS.get(line[:1], "same"), "text": line} for line in lines[:_MOST_LINES]]
