"""`mcp-gateway tools`: list the tools that a host would be offered."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from gateway.cli.command_context import (
    AsJson,
    ConfigFile,
    ProfileNames,
    Revision,
    UpstreamUrls,
    chosen_profiles,
    profile_option,
    run_until_signal,
    settings_for,
    the_profile,
    the_profiles,
    without_waiting,
)
from gateway.cli.command_remedies import why_missing
from gateway.cli.early_lists import prepare_for_hosts
from gateway.cli.exit_codes import DONE, UNAVAILABLE, complain
from gateway.cli.given_options import GivenOptions
from gateway.cli.known_upstream import check_upstream
from gateway.cli.named_callers import PrincipalName, TokenName, named_caller
from gateway.cli.pages import (
    WithPages,
    declaring,
    expected,
    shows_pages,
    tell_of_pages,
    tell_of_tools_with_pages,
    tell_what_is_without_pages,
)
from gateway.cli.progress import Wait, is_there
from gateway.cli.server_completion import upstream_names
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.cli.token_report import list_lines
from gateway.cli.toolset_option import ToolsetName
from gateway.config.schema import Settings
from gateway.core.apps import for_the_model, pages
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import REVISIONS
from gateway.core.tokens import list_tokens
from gateway.core.tools.catalogue import OWN
from gateway.core.tools.signatures import signature
from gateway.runtime import run_gateway


def tools(
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[UPSTREAM]...", help="Only the tools of these. Default: of all.", autocompletion=upstream_names
        ),
    ] = None,
    config: ConfigFile = None,
    upstream: UpstreamUrls = None,
    profile: Annotated[ProfileNames, profile_option("Profile of the host. Default: gateway.profile.")] = None,
    revision: Revision = REVISIONS[-1],
    app: WithPages = False,
    why: Annotated[
        bool, typer.Option("--why", help="Also list the tools that rules and pins withhold or ask about, and why.")
    ] = False,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Also show what the tools of each upstream cost a model in the list.")
    ] = False,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="WORDS", help="Only what a host's model finds with these words, best first."),
    ] = None,
    token: TokenName = None,
    principal: PrincipalName = None,
    toolset: ToolsetName = None,
    as_json: AsJson = False,
) -> int:
    """List the tools of all upstreams, or of those that are named, as a host would be offered them.

    Each of these upstreams is started and waited for, up to its own limit. Ctrl-C lists the tools known so far. On a
    terminal, descriptions end after their first sentence; --json has all of everything.

    A server may offer more to a host that declares roots or elicitation, which this command does not.

    Example, with what a colleague reaches: mcp-gateway tools --token alice
    """
    settings = settings_for(config, upstream)
    asking = named_caller(settings, token, principal).with_toolset(settings, toolset)
    settings = asking.reached_of(settings)
    for server in servers or ():
        check_upstream(server, settings.upstreams, options=("search",))
    name = the_profile(profile) or asking.profile or settings.gateway.profile or "default"
    ((chosen, rules),) = chosen_profiles(settings, [name], revision).items()
    settings, caller = without_waiting(settings, chosen, revision)
    caller = asking.as_caller(declaring(caller, app))
    tell_of_pages({chosen: rules}, app)
    tell_what_is_without_pages({chosen: rules}, app)
    given = GivenOptions(config, upstream or (), the_profiles(profile), revision, app, toolset)
    wait = Wait(visible=not as_json, ctrl_c="list what is there")
    is_whole = not (servers or upstream or token or principal or toolset)
    prepare = partial(prepare_for_hosts, config) if is_whole else None
    ended = run_until_signal(
        lambda: _prepared(_listed(settings, servers or (), caller, wait, given, search), prepare),
        interrupt=wait.interrupt,
    )
    if isinstance(ended, int):
        return ended
    if as_json:
        _say_as_json(ended, chosen, why=why)
    elif search is not None:
        _say_found(ended)
    else:
        if ended.tools or not servers:
            _say_table(ended, with_pages=shows_pages(rules, app))
            if not shows_pages(rules, app):
                tell_of_tools_with_pages(ended.with_pages, rules, given.command("tools", "--app"))
        for line in (*(list_lines(ended.tokens) if tokens else ()), *(_why_lines(ended) if why else ())):
            say(line)
    _say_absent(ended, [name for name in servers or () if not settings.upstreams[name].enabled], given)
    return UNAVAILABLE if ended.missing else DONE


_SENTENCE_END = re.compile(r"(?<=[^.][.!?])\s")

REMEMBERED = "(as last known) "
"""Prefix of the description of a tool whose upstream is not available: it may be renamed or removed by now."""

FOR_PAGES = "(only for pages) "
"""Prefix of the description of a tool that hosts with pages do not offer to the model."""


@dataclass(frozen=True)
class _Listed:
    """The tools, the names of those only remembered, and the reasons why upstreams are not available.

    `own`: the names of the gateway's own tools. `withheld`: the tools that rules and pins withhold, with the reasons.
    `asks`: the tools whose calls wait for the user's approval, with the rules that want it.
    """

    tools: list[dict[str, Any]]
    remembered: frozenset[str]
    missing: Mapping[str, str]
    withheld: Mapping[str, str]
    asks: Mapping[str, str]
    own: frozenset[str]
    tokens: Mapping[str, int]
    """What the tools of each upstream, and the gateway's own, cost a model in the list."""
    with_pages: int
    """How many of the tools of these servers have a page, at a host that shows pages."""


async def _prepared(listing: Awaitable[_Listed], prepare: Callable[[], Awaitable[None]] | None) -> _Listed:
    """List the tools, and prepare the lists of the hosts if all upstreams are there."""
    listed = await listing
    if prepare is not None and not listed.missing:
        await prepare()
    return listed


async def _listed(
    settings: Settings,
    servers: Sequence[str],
    caller: Caller,
    wait: Wait,
    given: GivenOptions,
    search: str | None,
) -> _Listed:
    """List the tools of these servers, or of all. The others are not started, but remembered tools of theirs count for
    the names: two servers may have a tool of the same name.
    """
    async with run_gateway(settings, asleep=bool(servers), expected=expected(caller, given.app)) as gateway:
        chosen = [gateway.upstreams[name] for name in servers or gateway.upstreams]
        for upstream in chosen if servers else ():
            upstream.wake()
        await wait.settled(chosen)
        listed = await gateway.router.respond("tools/list", {}, caller)
        enabled = [one for one in chosen if one.settings.enabled]
        away = [upstream for upstream in enabled if not is_there(upstream)]
        missing = {each.name: why_missing(each, wait.outcomes.get(each.name), given) for each in away}
        catalogue = gateway.router.catalogue(caller)
        routes = {name: route for name, route in catalogue.routes.items() if not servers or route.upstream in servers}
        offered = [tool for tool in listed["tools"] if tool["name"] in routes] if servers else listed["tools"]
        if search is not None:
            found = await gateway.router.offered.search(search, caller)
            tools = {tool["name"]: tool for tool in catalogue.tools}
            offered = [tools[name] for name in found if name in routes]
        remembered = frozenset(name for name, route in routes.items() if route.upstream in missing)
        withheld = {
            name: each.why for name, each in catalogue.withheld.items() if not servers or each.upstream in servers
        }
        own = frozenset(name for name, route in routes.items() if route.upstream == OWN)
        asks = {name: rule for name, rule in gateway.router.offered.asking(caller).items() if name in routes}
        costs = _costs(offered, {name: route.upstream for name, route in routes.items()})
        showing = gateway.router.catalogue(declaring(caller, True))
        of_pages = [tool for tool in showing.tools if pages(tool) and for_the_model(tool)]
        with_pages = sum(not servers or showing.routes[tool["name"]].upstream in servers for tool in of_pages)
        return _Listed(offered, remembered, missing, withheld, asks, own, costs, with_pages)


def _say_absent(ended: _Listed, off: Sequence[str], given: GivenOptions) -> None:
    """Print which upstreams are not available or, of those in `off`, not enabled, and what to do."""
    for name in off:
        remark(f"{name} is not enabled: {given.command('enable', name)}")
    for name, cause in ended.missing.items():
        complain(f"upstream {name}: {cause}")


def _say_found(ended: _Listed) -> None:
    for each in ended.tools:
        say(signature(each))
    if not ended.tools:
        say("no tool has any of these words")


def _say_as_json(ended: _Listed, profile: str, *, why: bool) -> None:
    costs = {"upstreams": ended.tokens, "total": sum(ended.tokens.values())}
    listed = {"profile": profile, "tools": ended.tools, "remembered": sorted(ended.remembered)}
    listed |= {"missing": ended.missing, "tokens": costs}
    say_json(listed | ({"withheld": ended.withheld, "asks": ended.asks} if why else {}))


def _say_table(ended: _Listed, *, with_pages: bool) -> None:
    marks = dict.fromkeys(ended.remembered, REMEMBERED)
    listed = sorted(ended.tools, key=lambda tool: tool["name"] in ended.own)  # the user's own servers first
    words = [marks.get(tool["name"], "") + _mark(tool) + _what_it_does(tool) for tool in listed]
    columns = {"tool": [tool["name"] for tool in listed], "what it does": words}
    if with_pages:
        uris = [next(iter(pages(tool)), "-") for tool in listed]
        columns = {"tool": columns["tool"], "page": uris, "what it does": words}
    # A page's uri is copied into `read`, so it stays in one piece: the description is folded instead.
    say_table(tuple(columns), zip(*columns.values(), strict=True), unfolded=len(columns) - 1)


def _costs(listed: Sequence[Mapping[str, Any]], owners: Mapping[str, str]) -> dict[str, int]:
    """Return the tokens of the tools that models are offered, by upstream, the dearest first."""
    costs: Counter[str] = Counter()
    for tool in listed:
        if for_the_model(tool):
            costs[owners.get(str(tool.get("name")), OWN)] += list_tokens([tool])
    return dict(costs.most_common())


def _why_lines(listed: _Listed) -> Iterator[str]:
    for tool, rule in listed.asks.items():
        yield f"{plain(tool, 200)} asks the user first, by the rule {plain(rule, 100)!r}"
    for tool, cause in listed.withheld.items():
        yield f"{plain(tool, 200)} is withheld: {cause}"


def _mark(tool: dict[str, Any]) -> str:
    return "" if for_the_model(tool) else FOR_PAGES


def _what_it_does(tool: dict[str, Any]) -> str:
    """Return the first sentence of the description's first line. With --json, all of it is there."""
    lines = str(tool.get("description") or tool.get("title") or "").strip().splitlines()
    line = lines[0] if lines else ""
    return _SENTENCE_END.split(line, maxsplit=1)[0]
