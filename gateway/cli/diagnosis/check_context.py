"""The input of all checks: a configuration as far as it could be read, and the environment that it would run in."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from gateway.config.schema import Settings
from gateway.core.profiles.profile import Profile
from gateway.upstream import Upstream

Shown = Callable[[Collection[Upstream]], AbstractContextManager[None]]
"""A context manager held during the wait for upstreams: it shows their progress, and may cancel the wait."""


def ignore_progress(_: Collection[Upstream]) -> AbstractContextManager[None]:
    """Nobody watches."""
    return nullcontext()


_FOR_PEOPLE = frozenset({"agent-loop", "passthrough", "inspector"})
"""Profiles that do not represent a model: they accept everything."""


@dataclass(frozen=True)
class CheckContext:
    """A configuration under examination. `settings` are the defaults if it is unusable; `path` is its file, if any.

    `host` is the profile that the examination is limited to, if any. `here` are the profiles of the hosts on this
    machine and of those named in the configuration; None means every known host.
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
        """The profiles to examine: `host`, or all `here` that have a model, without their variants."""
        if self.host is not None:
            return {self.host: self.profiles[self.host]}
        aside = _FOR_PEOPLE.union(*(profile.variants for profile in self.profiles.values()))
        return {
            name: profile
            for name, profile in self.profiles.items()
            if name not in aside and (self.here is None or name in self.here)
        }
