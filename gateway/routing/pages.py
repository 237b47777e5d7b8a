"""The pages (MCP Apps) that hosts probably have open, and which upstream's tool a page means by a bare name.

Hosts do not say which page a call comes from (https://github.com/modelcontextprotocol/ext-apps/issues/746). What they
do first is known: they read the page, and call the tool that it belongs to.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.tools.catalogue import Route
from gateway.errors import UnknownTool

_CALLERS = 4_096
"""Maximum number of callers remembered: those that opened a page last."""


class OpenPages:
    """The upstreams whose pages each caller has opened, latest first, by session and by client.

    Some hosts open a new session for nearly every request, so pages that a client opened in other sessions count too.
    """

    def __init__(self) -> None:
        self._opened: OrderedDict[tuple[str | None, ...], OrderedDict[str, None]] = OrderedDict()

    def add(self, upstream: str, caller: Caller) -> None:
        """Record that the caller read a page of this upstream, or called a tool that is shown with one."""
        for key in _keys(caller):
            upstreams = self._opened.setdefault(key, OrderedDict())
            upstreams[upstream] = None
            upstreams.move_to_end(upstream)
            self._opened.move_to_end(key)
        while len(self._opened) > _CALLERS:
            self._opened.popitem(last=False)

    def latest(self, caller: Caller) -> Iterator[str]:
        """The upstreams whose pages the caller has opened, latest first."""
        # Pages that the client opened in other sessions count only if this session has opened none.
        found = next((opened for key in _keys(caller) if (opened := self._opened.get(key))), ())
        return reversed(tuple(found))

    def chosen(self, routes: Sequence[Route], caller: Caller, *, settled: bool) -> Route | None:
        """Choose which of several tools of one name is meant; None if that cannot be decided.

        It is the tool of the page opened last, or else the only tool, unless an upstream that is still starting may
        bring another (`settled` is false).
        """
        by_upstream = {route.upstream: route for route in routes}
        for upstream in self.latest(caller):
            if upstream in by_upstream:
                return by_upstream[upstream]
        return routes[0] if settled and len(routes) == 1 else None

    def check(self, route: Route, caller: Caller) -> None:
        """Refuse a call to a tool that is only for its upstream's own pages if it cannot come from one of them.

        A caller that has opened pages, but none of this upstream, cannot be calling from one of its pages.

        Raises:
            UnknownTool: the call cannot come from a page of the tool's upstream.
        """
        if not route.only_app:
            return
        opened = tuple(self.latest(caller))
        if opened and route.upstream not in opened:
            raise UnknownTool(
                f"{plain(route.tool, 100)!r} is for pages of {route.upstream} alone, and none seems to be open",
                remedy=f"open the page of {route.upstream} again",
            )


def _keys(caller: Caller) -> tuple[tuple[str | None, ...], ...]:
    client = ("client", caller.principal, caller.client_name, caller.profile)
    return (client,) if caller.session is None else (("session", caller.session), client)
