"""Notifications of changes: who is notified, and of what."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from gateway.core import apps
from gateway.core.model.caller import Caller
from gateway.core.model.change import UPDATED, Change
from gateway.core.tools.catalogue import OWN
from gateway.errors import ProfileError, UnknownToolset
from gateway.routing.call_rules import CallRules
from gateway.routing.callers import Callers
from gateway.routing.profile_choices import ProfileChoices

logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[Change], None]
"""Called with a change of a list or a resource. Must not block."""


class ChangeNotifications:
    """Notifies listeners, each of which is a host's connection."""

    def __init__(self, profiles: ProfileChoices, callers: Callers, rules: CallRules) -> None:
        self._profiles = profiles
        self._callers = callers
        self._rules = rules
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Notify `listener` of changed lists and watched resources. Return a function that ends the subscription."""
        # Wrapped, because the same listener may be subscribed twice and unsubscribed once.
        entry: Listener = lambda change: listener(change)  # noqa: E731
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    def hears(self, caller: Caller, change: Change) -> bool:
        """Whether this host is to be notified of a change.

        It is of what exists for it, and if it acts on such notifications (`features.broken`).
        """
        if change.principal not in (None, caller.principal):
            return False
        try:
            broken = self._profiles.profile_of(caller).features.broken
            if change.uri is None and f"{change.kind}_list_changed" in broken:
                return False
            grant = self._callers.known(caller).grant
        except ProfileError:  # it asked for a profile that no longer exists
            grant = self._rules.narrowed(replace(caller, toolsets=())).grant
        except UnknownToolset:  # likewise: its next request is refused, and says so
            return True
        if change.upstream in (None, OWN):
            return True
        if change.kind == "tools":
            return grant.reaches(change.upstream) and self._rules.concerns(change.tools, caller.principal, grant)
        return grant.reaches_content(change.upstream)

    def of_upstream(self, upstream: str, change: Change) -> None:
        """Notify of a change in an upstream: of a page's resource by both its URIs."""
        self.of(change)
        if (uri := change.uri) is not None and apps.is_prefixed(uri):
            # Most hosts know it by its URI prefixed with the upstream.
            self.of(change._replace(kind=UPDATED + apps.outward(upstream, uri)))

    def of_all_lists(self) -> None:
        """Notify that any list may have changed."""
        for kind in ("tools", "prompts", "resources"):
            self.of(Change(kind))

    def of(self, change: Change) -> None:
        """Notify of a change."""
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:
                # A listener is one host's connection; if it fails, the others are still notified.
                logger.exception("a listener failed")
