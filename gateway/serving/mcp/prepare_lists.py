"""Prepare the lists that hosts are given early, before they have ever connected (`gateway.serving.mcp.early_lists`).

The service behind is one whose upstreams sleep: it lists what is known of them, and starts nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from mcp.shared.exceptions import MCPError

from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.revisions import REVISIONS
from gateway.serving.mcp.downstream import Downstream, HostRequest
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.hosts import HostChannel
from gateway.serving.mcp.kept_lists import LISTS, KeptLists, key_of_prepared
from gateway.serving.mcp.list_keeper import lasting_list
from gateway.serving.mcp.service import Service


async def prepare_lists(
    service: Service, identity: Identity, kept: KeptLists, facts: str, client_names: Iterable[str]
) -> None:
    """Keep the lists for hosts of these names, in each revision, under these facts.

    A host that would not hear of a change gets none, nor does one of which an upstream is unknown.
    """
    downstream = Downstream(service, identity)
    for name in client_names:
        prepared: dict[tuple[str, str], tuple[bytes, str]] = {}
        for revision in REVISIONS:
            caller = Caller(revision=revision, client_name=name, client_info={"name": name})
            if not service.knows_upstreams(caller):
                return
            for method, kind in LISTS.items():
                if not service.hears(caller, Change(kind.notified)):
                    continue
                lasting = await _listed(downstream, method, caller)
                if lasting is not None:
                    prepared[revision, method] = lasting
        if prepared:
            kept.keep_prepared(key_of_prepared(facts, name), prepared)


async def _listed(downstream: Downstream, method: str, caller: Caller) -> tuple[bytes, str] | None:
    channel = HostChannel(_Nobody(), caller, None)
    try:
        result = await downstream.answer(HostRequest(method, {}, caller.revision, caller, channel, _ignored))
    except MCPError:
        return None
    return lasting_list(method, result)


async def _ignored(progress: float, total: float | None = None, message: str | None = None) -> None:
    """Take the progress of a request that nobody waits for."""


class _Nobody:
    """The channel of a host that is not there: it is asked and told nothing."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: object = None
    ) -> dict[str, Any]:
        raise MCPError(-32601, f"nobody is there to answer {method}")

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: object = None) -> None:
        return None
