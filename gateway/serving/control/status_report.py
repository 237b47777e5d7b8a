"""The status of a running gateway as JSON: names, states and numbers, but no content and no secrets."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread

from gateway._version import __version__
from gateway.config.moments import moment_text
from gateway.core.apps import shows_apps
from gateway.core.model.caller import Caller
from gateway.core.model.toolset_scope import problem_in
from gateway.core.tools.catalogue.repair import withheld
from gateway.errors import GatewayError
from gateway.serving.console.ports import ShownGateway
from gateway.serving.control.list_costs import list_cost
from gateway.serving.control.reload_config import Reloader
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.system.process_usage import memory_of_trees, own_memory
from gateway.upstream.connection.owners import host_of

if TYPE_CHECKING:
    from anyio.abc import SocketStream

    from gateway.admission.admission import Admission
    from gateway.content.links.links import Links
    from gateway.serving.console.on_request import ConsoleOnRequest
    from gateway.upstream import Upstream
    from gateway.upstream.pins import Pins
    from gateway.upstream.recording.recorder import Recorder


RECENT_SECONDS = 60.0
"""Seconds after a request in which a host without an open stream counts as connected."""


class Running(ShownGateway, Protocol):
    """The gateway to report on and to control (implemented by `gateway.runtime.Gateway`)."""

    @property
    def links(self) -> "Links": ...
    @property
    def recorder(self) -> "Recorder | None": ...
    async def logged_in(self, upstream: str, principal: str) -> None: ...


class ConnectedHostPort(Protocol):
    """A connected host (implemented by `gateway.serving.mcp.presence.ConnectedHost`)."""

    @property
    def caller(self) -> Caller: ...
    @property
    def since(self) -> float: ...
    @property
    def last(self) -> float: ...
    @property
    def requests(self) -> int: ...


class SharedPort(Protocol):
    """The hosts that attach to a gateway (implemented by `gateway.serving.shared.attached_hosts.AttachedHosts`)."""

    @property
    def key(self) -> str: ...
    async def serve(self, request: Mapping[str, Any], stream: "SocketStream", rest: bytes) -> None: ...
    def report(self) -> list[dict[str, Any]]: ...
    def pid_of(self, session: str | None) -> int | None: ...


def no_hosts() -> Iterable[ConnectedHostPort]:
    """Return no hosts. Used until something serves them."""
    return ()


def unheard(problem: str | None) -> None:
    """Do nothing. Used where nobody waits for the control socket."""


@dataclass
class Serving:
    """How the gateway is served: its configuration file and, once known, its transports and its hosts."""

    config: Path | None
    started: float
    transports: list[str] = field(default_factory=list[str])
    connected_hosts: Callable[[], Iterable[ConnectedHostPort]] = no_hosts
    log: Path | None = None
    principal: str = Caller().principal
    """The owner of the hosts' content."""
    console: "ConsoleOnRequest | None" = None
    shared: "SharedPort | None" = None
    """The hosts on stdio that attach to the gateway, if they can."""
    replicas: Callable[[], list[dict[str, Any]] | None] = lambda: None
    """The replicas of the cluster, this one first; None if there is no cluster."""
    grace: float = 0.0
    """Seconds that running requests get to end when the gateway is told to stop."""
    running: RunningRequests = field(default_factory=RunningRequests)
    """What is being answered, over HTTP and for commands about content."""
    worker_folder: Path | None = None
    """The folder of the control socket, if the gateway is one of several workers, to which their supervisor turns."""
    on_reachable: Callable[[str | None], object] = unheard
    """Called when commands and hosts can reach the gateway, with None, or with the reason why they cannot."""


async def report(running: Running, serving: Serving, reloader: Reloader) -> dict[str, Any]:
    """Return the whole report."""
    upstreams = list(running.upstreams.values())
    groups = [upstream.pid for upstream in upstreams if upstream.pid is not None]
    memory = await anyio.to_thread.run_sync(memory_of_trees, groups)
    return {
        "pid": os.getpid(),
        "name": running.settings.gateway.name,
        "version": __version__,
        "started": moment_text(serving.started),
        "config": str(serving.config) if serving.config else None,
        "log": str(serving.log) if serving.log else None,
        "transports": list(serving.transports),
        "principal": serving.principal,
        "memory_bytes": await anyio.to_thread.run_sync(own_memory),
        "configuration": {
            "read": moment_text(reloader.applied_at),
            "problem": reloader.problem,
            "restart_needed": list(reloader.restart_needed),
        },
        "requests": _requests(running.router.admission),
        "store": _store(running),
        "audit": None if (trail := running.audit) is None else {"path": str(trail.path), "problem": trail.problem},
        "recording": None if (recorder := running.recorder) is None else recorder.report,
        "hosts": [_host(host, running, serving.shared) for host in serving.connected_hosts()],
        "attached": None if serving.shared is None else serving.shared.report(),
        "replicas": serving.replicas(),
        "approvals": sum(each.verdict is None for each in running.router.approvals.listed()),
        "upstreams": [_upstream(upstream, memory, running.pins) for upstream in upstreams],
    }


def _requests(admission: "Admission") -> dict[str, Any]:
    return {
        "running": admission.running,
        "waiting": admission.waiting,
        "places": admission.places,
        "refused": dict(admission.refused),
    }


def _store(running: Running) -> dict[str, Any]:
    kept, pieces = running.store.usage
    return {
        "url": running.store.where,
        "bytes": kept,
        "pieces": pieces,
        "max_bytes": running.settings.store.max_bytes,
    }


def _is_connected(host: ConnectedHostPort, running: Running) -> bool:
    """Whether a host has a stream or a request open, or had a request lately: over HTTP, few say that they leave."""
    return running.upstreams.attendance.has(host_of(host.caller)) or time.time() - host.last < RECENT_SECONDS


def _host(host: ConnectedHostPort, running: Running, shared: SharedPort | None) -> dict[str, Any]:
    caller, router = host.caller, running.router
    try:
        choice = router.choice_of(caller)
        profile, because = choice.profile.name, choice.because
        pages = shows_apps(caller.capabilities, choice.profile.apps.host)
    except GatewayError as error:  # it asked for a profile that does not exist, or no longer does
        profile, because, pages = None, error.message, False
    return {
        "name": caller.client_name,
        "version": caller.client_version,
        "revision": caller.revision,
        "principal": caller.principal,
        "token": caller.token,
        "toolsets": [name for name in caller.toolsets if problem_in(name) is None],
        "problem": router.unknown_toolset(caller),
        "profile": profile,
        "because": because,
        "pages": pages,
        "since": moment_text(host.since),
        "last_request": moment_text(host.last),
        "connected": _is_connected(host, running),
        "requests": host.requests,
        "pid": None if shared is None else shared.pid_of(caller.session),
    }


def _logins(upstream: "Upstream") -> list[dict[str, Any]]:
    """The state for each principal, if each has to log in; that of the operator first."""
    if not upstream.is_personal:
        return []
    return [
        {"principal": each.principal, "state": each.state.value, "cause": each.cause} for each in upstream.principals
    ]


def _upstream(upstream: "Upstream", memory: Mapping[int, int], pins: "Pins") -> dict[str, Any]:
    counts, settings = upstream.counts, upstream.settings
    changed = pins.summary(upstream.name, settings)
    return {
        "name": upstream.name,
        "state": upstream.state.value,
        "cause": upstream.cause,
        "code": upstream.failure.code.value if upstream.failure is not None else None,
        "since": moment_text(counts.since),
        "transport": settings.transport_name,
        "era": upstream.era,
        "revision": upstream.revision,
        "tools": len(upstream.tools()),
        "list_tokens": list_cost(upstream.name, upstream.tools()),
        "withheld": [{"tool": tool, "why": why} for tool, why in withheld(upstream.tools())],
        "left_out": [*upstream.left_out, *([] if changed is None else [changed])],
        "sessions": upstream.sessions,
        "logins": _logins(upstream),
        "calls": {"total": counts.total, "failed": counts.failed, "running": counts.running},
        "restarts": counts.restarts,
        "pid": upstream.pid,
        "memory_bytes": memory.get(upstream.pid) if upstream.pid is not None else None,
    }
