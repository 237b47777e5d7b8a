"""Check each upstream: start it, time the start, list its tools, and judge them for every host."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from gateway.cli.diagnosis.access import check_access
from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.command_line import command_line
from gateway.cli.diagnosis.findings import CheckResult, Level, list_names
from gateway.cli.diagnosis.skills import check_skills
from gateway.cli.diagnosis.tool_lists import HostOffer, beyond, check_declared, offered
from gateway.config.find_config import cache_folder, state_folder
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.arguments import ways_of_giving
from gateway.core.apps import for_the_model
from gateway.core.fact_words import counted, plain
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.tokens import list_tokens
from gateway.core.tools.arguments import path_words
from gateway.core.tools.catalogue import OWN, build
from gateway.core.tools.catalogue.repair import unusable
from gateway.errors import Failure
from gateway.routing.own_tools.declarations import TOOLS
from gateway.runtime import open_logins
from gateway.upstream import Catalogues, Upstream, Upstreams, UpstreamState
from gateway.upstream.connection.first_start import longest_start
from gateway.upstream.pin_files import PinsDamaged
from gateway.upstream.pins import Pins, summary
from gateway.upstream.remedies import ANOTHER_REQUEST_MAY_DO, full_remedy
from gateway.upstream.transports.environment import held_back
from gateway.upstream.transports.launchers import launcher_of

_OTHER_WAYS_SECONDS = 6.0
_MORE = 5.0
"""Seconds beyond the limit after which another transport or path counts as hanging."""

_TRANSPORTS = {"stdio": "stdio", "openapi": "OpenAPI", "replay": "a recording"}


async def check_upstreams(context: CheckContext) -> list[CheckResult]:
    """Check every upstream by itself, and then the tools that hosts are offered from all of them."""
    settings = context.settings
    took: dict[str, _StartTime] = {}
    first: dict[str, _Snapshot] = {}
    # No upstream may go to sleep during the wait for the others.
    awake = {name: one.model_copy(update={"idle_stop": 0.0}) for name, one in settings.upstreams.items()}
    # Catalogues saved here serve the next start of a host, which then does not wait for installations.
    cache = cache_folder(context.environ)
    catalogues = Catalogues(cache / "catalogues") if cache is not None else None
    logins, _ = open_logins(settings, settings.upstreams.get)
    async with Upstreams(awake, on_change=_nobody_listens, catalogues=catalogues, logins=logins) as upstreams:
        with context.shown(upstreams.values()):
            async with anyio.create_task_group() as tasks:
                for upstream in upstreams.values():
                    tasks.start_soon(_timed, upstream, took, first)
        now = {name: _Snapshot.of(upstream) for name, upstream in upstreams.items()}
        pins = await anyio.to_thread.run_sync(_pinned, context, upstreams)
        skills = await check_skills(upstreams)
    # An upstream that has failed is reported as failed, although it may be starting again by now.
    states = {name: seen if seen.state is UpstreamState.READY else first.get(name, seen) for name, seen in now.items()}
    other_ways = await _other_ways(settings.upstreams, states)
    offers = _offers(context, states)
    findings: list[CheckResult] = []
    for name, seen in states.items():
        upstream = settings.upstreams[name]
        command = command_line(name, upstream, context.path)
        findings += _state(name, seen, upstream, took[name], other_ways.get(name), context.environ, command)
        if seen.state is UpstreamState.READY:
            findings += _tools(name, seen, settings.upstreams[name], offers)
        findings += skills.get(name, ())
        findings += pins.get(name, ())
    lists = {name: [str(tool.get("name")) for tool in seen.tools] for name, seen in states.items()}
    return [*findings, *beyond(offers), *check_access(settings, lists, context.hosts)]


def _pinned(context: CheckContext, upstreams: Mapping[str, Upstream]) -> dict[str, list[CheckResult]]:
    """Compare the tools with their pins, where they are pinned."""
    folder = state_folder(context.environ)
    pins = Pins(folder / "pins" if folder is not None else None, context.settings.pins.mode)
    found: dict[str, list[CheckResult]] = {}
    for name, upstream in upstreams.items():
        mode = pins.mode_of(upstream.settings)
        level: Level = "problem" if mode == "hold" else "warning"
        try:
            if upstream.state is UpstreamState.READY:
                pins.look(upstream, Caller(), upstream.tools())()
            words, todo = (
                summary(pins.changes(name, upstream.settings), hold=mode == "hold"),
                f"mcp-gateway pins diff {name}",
            )
        except PinsDamaged as error:
            words, todo = str(error), error.remedy or f"mcp-gateway pins approve {name}"
        if words is not None:
            found[name] = [CheckResult(f"upstream {name}", level, words, todo)]
    return found


@dataclass(frozen=True)
class _Snapshot:
    """A snapshot of an upstream after all starts had ended, without tools that are only remembered."""

    state: UpstreamState
    cause: str | None
    failure: Failure | None
    transport: str
    revision: str | None
    server: str
    tools: Sequence[dict[str, object]]
    left_out: Sequence[str] = ()
    nested: Sequence[str] = ()
    is_queued: bool = False

    @staticmethod
    def of(upstream: Upstream) -> "_Snapshot":
        info = upstream.server_info or {}
        server = plain(f"{info.get('name', '')} {info.get('version', '')}", 80)
        transport = _TRANSPORTS.get(upstream.settings.transport_name, "HTTP")
        tools = upstream.tools() if upstream.state is UpstreamState.READY else ()
        why = upstream.cause, upstream.failure
        facts = upstream.revision, server, tools, upstream.left_out, upstream.nested_too_deeply, upstream.is_queued
        return _Snapshot(upstream.state, *why, transport, *facts)


def _nobody_listens(*_: object) -> None:
    """Ignore changes: they do not affect the examination."""


@dataclass(frozen=True)
class _StartTime:
    """The seconds that a start took in all, and the seconds of them spent waiting for its turn."""

    all: float
    waiting: float

    @property
    def own(self) -> float:
        return max(0.0, self.all - self.waiting)


async def _timed(upstream: Upstream, took: dict[str, _StartTime], first: dict[str, _Snapshot]) -> None:
    start = anyio.current_time()
    try:
        await upstream.ready(math.inf)  # each start has its own limit
        first[upstream.name] = _Snapshot.of(upstream)
    finally:
        took[upstream.name] = _StartTime(anyio.current_time() - start, upstream.waited)


def _state(
    name: str,
    seen: _Snapshot,
    settings: UpstreamSettings,
    took: _StartTime,
    other_way: str | None,
    environ: Mapping[str, str],
    command: str | None,
) -> Iterator[CheckResult]:
    about = f"upstream {name}"
    match seen.state:
        case UpstreamState.READY:
            era = "modern era" if seen.revision in MODERN_REVISIONS else "handshake era"
            server = f"{seen.server}, " if seen.server else ""
            waited = f", and {took.waiting:.0f} s of waiting for its turn" if took.waiting else ""
            text = f"ready after {took.own:.1f} s{waited}: {server}{seen.transport}, {seen.revision} ({era})"
            tokens = list_tokens(tool for tool in seen.tools if unusable(tool) is None)
            costs = f" (about {counted(tokens, 'token')} in a list, as it declares them)" if tokens else ""
            yield CheckResult(about, "ok", f"{text}, {counted(len(seen.tools), 'tool')}{costs}")
            for why in seen.left_out:
                yield CheckResult(
                    about, "warning", why, f"raise upstreams.{name}.limits.list_bytes, or have it list less"
                )
            for why in seen.nested:
                yield CheckResult(about, "warning", why, "the server's author has to fix it")
            if took.own > settings.timeout.start / 2 and longest_start(settings) == settings.timeout.start:
                text = f"it takes {took.own:.0f} of the {settings.timeout.start:g} s that it may take to start"
                yield CheckResult(
                    about, "warning", text, f"upstreams.{name}.timeout = {{ start = {4 * took.own:.0f} }}"
                )
        case UpstreamState.DISABLED:
            yield CheckResult(about, "ok", "not enabled", f"upstreams.{name}.enabled = true")
        case UpstreamState.STARTING | UpstreamState.INSTALLING:  # the wait was ended
            cause = f": {seen.cause}" if seen.cause else ""
            text = f"{seen.state.value} for {took.own:.0f} s{cause}"
            if seen.is_queued:
                text = f"{seen.cause}, for {took.all:.0f} s"
            yield CheckResult(about, "warning", text, "run mcp-gateway doctor again, and let it wait")
        case _:
            text = seen.failure.message if seen.failure is not None else seen.cause or f"is {seen.state.value}"
            remedy = other_way or full_remedy(seen.failure, name, settings, command)
            last = seen.failure.details.get("stderr", "").splitlines() if seen.failure is not None else []
            yield CheckResult(about, "problem", text, remedy, stderr=tuple(last))
            if launcher_of(settings.command, settings.args) and (names := held_back(settings.env, environ)):
                text = f"{', '.join(names)} did not reach it: it contains a password, which not every server should get"
                given = ", ".join(f'{each} = "${{{each}}}"' for each in names)
                yield CheckResult(
                    about, "warning", text, f"upstreams.{name}.env = {{ {given} }}, if it needs the proxy"
                )


def _tools(
    name: str, seen: _Snapshot, settings: UpstreamSettings, offers: Sequence[HostOffer]
) -> Iterator[CheckResult]:
    about = f"upstream {name}"
    if not seen.tools:
        yield CheckResult(
            about, "warning", "it has no tools", f"see whether it needs more in upstreams.{name}.args or env"
        )
        return
    yield from check_declared(name, seen.tools)
    usable = list(dict.fromkeys(str(tool["name"]) for tool in seen.tools if unusable(tool) is None))
    kept = {route.tool for offer in offers for route in offer.catalogue.routes.values() if route.upstream == name}
    # A host's own limit is reported elsewhere; a tool that no host is offered was filtered by the configuration.
    for_pages = {str(tool["name"]) for tool in seen.tools if unusable(tool) is None and not for_the_model(tool)}
    left_out = [tool for tool in usable if tool not in kept and tool not in for_pages]
    if left_out and offers:
        filtered = "by tools.include and exclude" if kept or settings.tools.include != ("*",) else "by tools.exclude"
        level = "ok" if kept else "problem"
        text = (
            f"{counted(len(left_out), 'tool')} left out {filtered}: {list_names(plain(tool, 80) for tool in left_out)}"
        )
        yield CheckResult(about, level, text, f"change upstreams.{name}.tools" if not kept else None)
    yield from offered(name, usable, settings.tools.rename, offers)
    taking = {
        f"{plain(route.tool, 80)} ({', '.join(plain(path_words(each.path), 80) for each in route.parameters)})"
        for offer in offers
        for route in offer.catalogue.routes.values()
        if route.upstream == name and route.parameters
    }
    if taking:
        yield CheckResult(about, "ok", f"content is taken by its handle: {list_names(sorted(taking))}")


def _offers(context: CheckContext, states: Mapping[str, _Snapshot]) -> tuple[HostOffer, ...]:
    gateway = context.settings.gateway
    lists = {name: seen.tools for name, seen in states.items()}
    selections = {name: upstream.tools for name, upstream in context.settings.upstreams.items()}
    fetched = bool(context.settings.fetch.allow)
    giving = {
        name: ways_of_giving(upstream, fetched=fetched, links=True)
        for name, upstream in context.settings.upstreams.items()
    }
    return tuple(
        HostOffer(
            profile,
            build(
                {OWN: TOOLS, **lists} if profile.tools.helpers else lists,
                selections,
                gateway.prefix,
                profile,
                gateway.name,
                giving=giving,
            ),
            gateway.name,
        )
        for profile in context.hosts.values()
    )


async def _other_ways(upstreams: Mapping[str, UpstreamSettings], states: Mapping[str, _Snapshot]) -> dict[str, str]:
    """Find edits with which an upstream answers whose URL does not answer correctly, by the upstream's name."""
    ways = {
        name: list(_ways(name, upstreams[name]))
        for name, seen in states.items()
        if upstreams[name].url is not None
        and seen.state is UpstreamState.FAILED
        and seen.failure is not None
        and seen.failure.code in ANOTHER_REQUEST_MAY_DO
    }
    tried = {f"{name}-{place}": way for name, some in ways.items() for place, (way, _) in enumerate(some)}
    if not tried:
        return {}
    async with Upstreams(tried, on_change=_nobody_listens) as others:
        await others.settled(_OTHER_WAYS_SECONDS + _MORE)
        working = {name for name, upstream in others.items() if upstream.state is UpstreamState.READY}
    edits = {
        name: [edit for place, (_, edit) in enumerate(some) if f"{name}-{place}" in working]
        for name, some in ways.items()
    }
    return {name: found[0] for name, found in edits.items() if found}


def _ways(name: str, settings: UpstreamSettings) -> Iterable[tuple[UpstreamSettings, str]]:
    """Yield other transports and paths at the same server, each with the edit that leads to it."""
    assert settings.url is not None
    parts = urlsplit(settings.url)
    start = {"timeout": settings.timeout.model_copy(update={"start": _OTHER_WAYS_SECONDS})}
    if settings.transport != "auto":
        other = "sse" if settings.transport == "http" else "http"
        edit = f'it does answer over the other transport: upstreams.{name}.transport = "{other}" (or "auto")'
        yield settings.model_copy(update={**start, "transport": other}), edit
    for path, transport in (("/mcp", "http"), ("/sse", "sse")):
        if parts.path.rstrip("/") != path:
            url = parts._replace(path=path).geturl()
            edit = f"an MCP server answers at {path} there: put that path into upstreams.{name}.url"
            yield settings.model_copy(update={**start, "url": url, "transport": transport}), edit
