"""Owners of stored content, for the operator of the machine: hosts learn of nobody's content but their own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from gateway.config.schema import Settings
from gateway.config.setting_types import RESERVED_PRINCIPALS
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.near_names import which_name

MOST_OWNERS = 200
"""Maximum number of owners whose content is looked at: a store in a bucket is asked about each of them."""
_SHOWN = 8


def nobody_seen() -> Iterable[str]:
    """Return no principals. Used where no hosts come."""
    return ()


@dataclass(frozen=True)
class ContentOwners:
    """Whose content may be in a store. A store in a bucket or a folder has only hashes of its owners' names.

    `default` is the owner for the hosts being served; `settings` returns those in force, and `seen` the principals of
    hosts that have come. `only_http` returns whether all hosts come over HTTP, and none is on stdio; None if no gateway
    runs, so that this is not known.
    """

    default: str = Caller().principal
    settings: Callable[[], Settings] = field(default=Settings)
    seen: Callable[[], Iterable[str]] = nobody_seen
    only_http: Callable[[], bool | None] = bool

    def known(self) -> list[str]:
        """Return the owners whose content may be there: the default first, then those of the configuration."""
        named = (self.default, *_principals(self.settings()), *self.seen())
        return list(islice(dict.fromkeys(name for name in named if name), MOST_OWNERS))

    def note_on_put(self, owner: str, *, was_named: bool) -> str | None:
        """Return what is odd about content for this owner, if no host can have it; else None.

        `was_named`: the owner was asked for, and is not the default.
        """
        settings = self.settings()
        if settings.access.admits_unnamed:
            return None
        hosts = list(dict.fromkeys([*_with_token(settings), *settings.access.principals(), *self.seen()]))
        if was_named:
            if owner in (*RESERVED_PRINCIPALS, *hosts):
                return None
            return f"no token or person has the principal {plain(owner, 100)!r}: {which_name(owner, hosts)}"
        only_http, needs_token = self.only_http(), settings.access.tokens or settings.access.authorization_server
        if owner in hosts or not needs_token or only_http is False:
            return None
        whose = "which no host of this gateway is" if only_http else "as hosts on stdio are"
        return (
            f"kept for {plain(owner, 100)}, {whose}: "
            f"--owner NAME keeps it for a host with a token or a login ({listed_owners(hosts)})"
        )


def listed_owners(owners: Iterable[str]) -> str:
    """Return owners as words, the first few of them."""
    named = [plain(owner, 100) for owner in owners]
    more = len(named) - _SHOWN
    return ", ".join(named[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "") if named else "none"


def _principals(settings: Settings) -> Sequence[str]:
    """Return the principals that hosts may have by the configuration: those without a name of their own, too."""
    return [*sorted(RESERVED_PRINCIPALS), *settings.access.principals()]


def _with_token(settings: Settings) -> Sequence[str]:
    return ["token"] if settings.http.token else []
