"""Call a tool once, and shape its result for each of several profiles."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.cli.command_context import open_shaper, with_raw_profile
from gateway.cli.command_remedies import command_remedies
from gateway.cli.given_options import GivenOptions
from gateway.cli.known_upstream import unknown_upstream
from gateway.cli.pages import callers, declaring, expected, shows_pages
from gateway.cli.progress import Wait, is_there
from gateway.cli.toolset_option import naming_toolset
from gateway.config.schema import Settings
from gateway.content.shaping import Shaped
from gateway.content.shaping.shape_for_readers import shape_for_readers
from gateway.core.apps import Audience
from gateway.core.fact_words import counted, plain
from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import Profile
from gateway.errors import UnknownTool
from gateway.runtime import Gateway, run_gateway


@dataclass(frozen=True)
class CalledTool:
    """The outcome of the call: the result from the server, the result shaped for every profile, and its reader."""

    raw: Mapping[str, Any]
    shaped: Mapping[str, Shaped]
    audience: Audience
    takes_content: frozenset[str]
    """The profiles whose hosts are offered a tool that takes handles."""
    notes: Sequence[str] = ()
    """What was noticed about the arguments."""


def _shaping_words(done: int, count: int) -> str:
    return f"shaping for {counted(count, 'profile')}" + (f", {done} done" if done else "")


async def call_for_profiles(
    settings: Settings,
    tool: str,
    arguments: dict[str, Any],
    profiles: Mapping[str, Profile],
    wait: Wait,
    given: GivenOptions,
    hidden: Collection[str],
    *,
    verbose: bool,
) -> CalledTool:
    """Call the tool once, and shape the raw result for every profile.

    `hidden` are the upstreams that its toolset leaves out.

    Raises:
        ConfigError: every tool's name begins with its upstream, and none has the name in front of this one.
        UnknownTool: no upstream has the tool, or the one that has it is `hidden`.
        UpstreamUnavailable: the upstream that has the tool cannot be started, or did not answer.
    """
    from gateway.cli.argument_notes import argument_notes

    raw_settings, caller = with_raw_profile(settings, next(iter(profiles.values())))
    toolsets = () if given.toolset is None else (given.toolset,)
    caller = replace(declaring(caller, given.app), toolsets=toolsets)
    async with (
        run_gateway(raw_settings, asleep=True, expected=expected(caller, given.app)) as gateway,
        open_shaper(settings, gateway.store) as shaper,
    ):
        with command_remedies(settings.upstreams, given, tool), naming_toolset(settings, given.toolset):
            await _woken(gateway, tool, caller, wait, hidden)
        if _is_for_pages_alone(gateway, tool, caller):
            routes = gateway.router.catalogue(caller).routes
            names = [name for name, route in routes.items() if route.tool == tool and route.audience != "app"]
            upstreams = {routes[name].upstream for name in names}
            has_pages = any(route.shows_page for route in routes.values() if route.upstream in upstreams)
            profiles = callers(profiles, tool, given.app, names, has_pages, given.command("tools"), verbose=verbose)
        said: list[str] = []

        async def on_progress(done: float, of: float | None, words: str | None) -> None:
            said[:] = [f"{done:g}" + (f" of {of:g}" if of else "") + (f": {words}" if words else "")]

        with (
            command_remedies(settings.upstreams, given, tool),
            naming_toolset(settings, given.toolset),
            wait.line(lambda: " ".join((f"calling {tool}", *said))),
        ):
            raw = await gateway.router.respond(
                "tools/call", {"name": tool, "arguments": arguments}, caller, on_progress=on_progress
            )
        owner, route = Caller().principal, gateway.router.catalogue(caller).routes.get(tool)
        audience = "app" if route is None else route.audience
        takes = frozenset(name for name in profiles if _takes_content(gateway, name, caller))
        shaped: dict[str, Shaped] = {}
        with wait.line(lambda: _shaping_words(len(shaped), len(profiles))):
            for name, profile in profiles.items():
                shaped[name] = await shape_for_readers(
                    shaper,
                    raw,
                    profile,
                    owner,
                    shows_pages=shows_pages(profile, given.app),
                    audience=audience,
                    takes_content=name in takes,
                )
        notes = argument_notes(gateway.router.catalogue(caller), tool, arguments, settings.code_mode)
        return CalledTool(raw, shaped, audience, takes, tuple(notes))


def _takes_content(gateway: Gateway, profile: str, caller: Caller) -> bool:
    """Whether a host of this profile is offered a tool that takes handles, so that lines name them."""
    return gateway.router.catalogue(replace(caller, profile=profile)).takes_content


def _is_for_pages_alone(gateway: Gateway, tool: str, caller: Caller) -> bool:
    """Whether only pages call the tool by this name: the tool is for pages, or only pages know the name."""
    catalogue = gateway.router.catalogue(caller)
    route = catalogue.routes.get(tool)
    return tool in catalogue.own_names if route is None else route.audience == "app"


async def _woken(gateway: Gateway, tool: str, caller: Caller, wait: Wait, hidden: Collection[str]) -> None:
    """Start the upstreams needed for a tool: the one that last had it, or whose prefix it has, or else all.

    Raises:
        ConfigError: every tool's name begins with its upstream, and none has the name in front of this one.
        UnknownTool: the upstream with this name is one of the `hidden`.
        UpstreamUnavailable: the upstream that last had the tool cannot be started.
    """
    from gateway.core.model.grant import SEPARATOR
    from gateway.core.tools.catalogue import OWN
    from gateway.core.tools.catalogue.names import NameRules
    from gateway.upstream import UpstreamState

    router, upstreams = gateway.router, gateway.upstreams

    async def started(names: Iterable[str]) -> None:
        asleep = [upstreams[name] for name in names if upstreams[name].state is UpstreamState.SLEEPING]
        for upstream in asleep:
            upstream.wake()
        await wait.settled(asleep)

    route = router.catalogue(caller).routes.get(tool)
    if route is not None and route.upstream == OWN:  # which may read resources of any upstream
        await started(upstreams)
        return
    rules = NameRules.of(router.profile_of(caller).tools, gateway.settings.gateway.name)
    owners = [name for name in upstreams if tool.startswith(rules.legal(name) + SEPARATOR)]
    front, separated, _ = tool.partition(SEPARATOR)
    is_own_name = tool in router.catalogue(caller).own_names  # a page may call it
    if separated and route is None and not owners and not is_own_name and gateway.settings.gateway.prefix == "always":
        if front in hidden:
            raise UnknownTool(f"there is no tool named {plain(tool, 100)!r}")
        raise unknown_upstream(front, upstreams)
    await started(owners if route is None else [route.upstream])
    if route is not None and not is_there(upstreams[route.upstream]):
        raise upstreams[route.upstream].unavailable()
    if tool not in router.catalogue(caller).routes and not owners:
        await started(upstreams)
