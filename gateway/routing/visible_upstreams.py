"""The upstreams that exist for a caller. The others do not: they are not listed, asked, waited for, or named.

One that wants a login of each principal is that of the caller's principal, with the state and the lists that it has.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from gateway.core.model.caller import Caller
from gateway.routing.ports import UpstreamPort, UpstreamsPort


def visible(upstreams: UpstreamsPort, caller: Caller) -> UpstreamsPort:
    """Return the upstreams that the caller's grant reaches, in the same order, as they are for its principal."""
    grant = caller.grant
    return _Visible(upstreams, caller.principal, None if grant.reaches_all_upstreams else grant.reaches)


def sharing(upstreams: UpstreamsPort, caller: Caller) -> UpstreamsPort:
    """Return the upstreams whose resources, prompts and completions exist for the caller, in the same way."""
    if not caller.grant.closed:
        return visible(upstreams, caller)
    return _Visible(upstreams, caller.principal, caller.grant.reaches_content)


class _Visible:
    """`reaches` tells which exist; None if all do."""

    def __init__(self, upstreams: UpstreamsPort, principal: str, reaches: Callable[[str], bool] | None) -> None:
        self._upstreams = upstreams
        self._principal = principal
        self._reaches = reaches

    def __getitem__(self, name: str) -> UpstreamPort:
        if self._reaches is not None and not self._reaches(name):
            raise KeyError(name)
        return self._upstreams[name].for_principal(self._principal)

    def __iter__(self) -> Iterator[str]:
        return iter(self._upstreams) if self._reaches is None else filter(self._reaches, self._upstreams)

    def attending(self, host: str) -> AbstractContextManager[None]:
        return self._upstreams.attending(host)
