"""The upstreams that exist for a caller. The others do not: they are not listed, asked, waited for, or named."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.routing.ports import UpstreamPort, UpstreamsPort


def visible(upstreams: UpstreamsPort, caller: Caller) -> UpstreamsPort:
    """Return the upstreams that the caller's grant reaches, in the same order."""
    return upstreams if caller.grant.reaches_all_upstreams else _Visible(upstreams, caller.grant)


class _Visible:
    def __init__(self, upstreams: UpstreamsPort, grant: Grant) -> None:
        self._upstreams = upstreams
        self._grant = grant

    def __getitem__(self, name: str) -> UpstreamPort:
        if not self._grant.reaches(name):
            raise KeyError(name)
        return self._upstreams[name]

    def __iter__(self) -> Iterator[str]:
        return filter(self._grant.reaches, self._upstreams)

    def attending(self, host: str) -> AbstractContextManager[None]:
        return self._upstreams.attending(host)
