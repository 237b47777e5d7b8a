"""Which pages (MCP Apps) hosts have open, as far as can be told, and whose tool one of them means by its bare name.

Hosts do not say which page a call comes from (https://github.com/modelcontextprotocol/ext-apps/issues/746). What they
do before is known: they read a page, and they call the tool that it belongs to.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from gateway.core.model.caller import Caller
from gateway.core.tools.catalogue import Route
from gateway.core.wording import plain
from gateway.errors import UnknownTool

_CALLERS = 4_096
"""How many callers are kept in mind, those that opened a page last."""


class OpenPages:
    """The upstreams whose pages each caller opened, the last first: of its session, and of the client behind it.

    Some hosts open a new session for nearly every request, so what the same client did in another one counts too.
    """

    def __init__(self) -> None:
        self._opened: OrderedDict[tuple[str | None, ...], OrderedDict[str, None]] = OrderedDict()

    def add(self, upstream: str, caller: Caller) -> None:
        """The caller has read a page of this upstream, or called a tool that is shown with one."""
        for key in _keys(caller):
            upstreams = self._opened.setdefault(key, OrderedDict())
            upstreams[upstream] = None
            upstreams.move_to_end(upstream)
            self._opened.move_to_end(key)
        while len(self._opened) > _CALLERS:
            self._opened.popitem(last=False)

    def latest(self, caller: Caller) -> Iterator[str]:
        """The upstreams, the last opened first."""
        # What the client did in other sessions counts only where this one has opened nothing.
        found = next((opened for key in _keys(caller) if (opened := self._opened.get(key))), ())
        return reversed(tuple(found))

    def chosen(self, routes: Sequence[Route], caller: Caller, *, settled: bool) -> Route | None:
        """Which of several tools of one name is meant; None where that cannot be told.

        That of the page opened last; else the only one, unless an upstream may bring another yet (not `settled`).
        """
        by_upstream = {route.upstream: route for route in routes}
        for upstream in self.latest(caller):
            if upstream in by_upstream:
                return by_upstream[upstream]
        return routes[0] if settled and len(routes) == 1 else None

    def check(self, route: Route, caller: Caller) -> None:
        """Refuse a page of one upstream the tools that another has for its own pages alone, as far as can be told.

        A caller that opened pages, and none of this upstream, cannot be calling from one of its pages.

        Raises:
            UnknownTool: that is so.
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
