"""What is examined: a configuration as far as it could be read, and where it is to run."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from gateway.config.schema import Settings
from gateway.core.profiles.profile import Profile
from gateway.upstream import Upstream

Shown = Callable[[Collection[Upstream]], AbstractContextManager[None]]
"""Open while upstreams are waited for: shows how they are doing, and may cancel the waiting."""


def ignore_progress(_: Collection[Upstream]) -> AbstractContextManager[None]:
    """Nobody watches."""
    return nullcontext()


_FOR_PEOPLE = frozenset({"agent-loop", "passthrough", "inspector"})
"""Profiles that stand for no model: they take everything."""


@dataclass(frozen=True)
class CheckContext:
    """`settings` are the defaults where the configuration cannot be used; `path` is its file, if there is one.

    `host` is the one profile that was asked about, if one was. `here` are the profiles of the hosts that this
    machine has and of those that the configuration speaks of; None: every host is asked about.
    """

    settings: Settings
    path: Path | None
    profiles: Mapping[str, Profile]
    environ: Mapping[str, str]
    host: str | None = None
    here: frozenset[str] | None = None
    shown: Shown = ignore_progress

    @property
    def hosts(self) -> Mapping[str, Profile]:
        """The profiles whose hosts are asked about: one, or all `here` that have a model, without their variants."""
        if self.host is not None:
            return {self.host: self.profiles[self.host]}
        aside = _FOR_PEOPLE.union(*(profile.variants for profile in self.profiles.values()))
        return {
            name: profile
            for name, profile in self.profiles.items()
            if name not in aside and (self.here is None or name in self.here)
        }
