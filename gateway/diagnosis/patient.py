"""What is examined: a configuration as far as it could be read, and where it is to run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.config.schema import Settings
from gateway.core.model.profile import Profile

_FOR_PEOPLE = frozenset({"passthrough", "inspector"})
"""Profiles that stand for no model: they take everything."""


@dataclass(frozen=True)
class Patient:
    """`settings` are the defaults where the configuration cannot be used; `path` is its file, if there is one.

    `host` is the one profile that was asked about, if one was.
    """

    settings: Settings
    path: Path | None
    profiles: Mapping[str, Profile]
    environ: Mapping[str, str]
    host: str | None = None

    @property
    def hosts(self) -> Mapping[str, Profile]:
        """The profiles whose hosts are asked about: one, or all that have a model, without their variants."""
        if self.host is not None:
            return {self.host: self.profiles[self.host]}
        aside = _FOR_PEOPLE.union(*(profile.variants for profile in self.profiles.values()))
        return {name: profile for name, profile in self.profiles.items() if name not in aside}
