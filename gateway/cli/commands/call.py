"""`mcp-gateway call`: call a tool once, and show what each host would be sent."""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.command_context import (
    ALL,
    AS_GIVEN,
    AsJson,
    ConfigFile,
    ProfileNames,
    Revision,
    UpstreamUrls,
    chosen_profiles,
    open_shaper,
    profiles_option,
    run_until_signal,
    settings_for,
    the_profiles,
    with_raw_profile,
)
from gateway.cli.command_remedies import NOT_SHARED, command_remedies
from gateway.cli.exit_codes import DONE, FAILED, refuse
from gateway.cli.given_options import GivenOptions
from gateway.cli.known_upstream import unknown_upstream
from gateway.cli.pages import (
    WithPages,
    callers,
    declaring,
    expected,
    shows_pages,
    tell_of_hidden_pictures,
    tell_of_pages,
    tell_what_is_without_pages,
)
from gateway.cli.print_result import Verbose, grouped, heading, profile_names, result_lines
from gateway.cli.progress import Wait, is_there
from gateway.cli.save_media import media_of, save_media
from gateway.cli.terminal import remark, say, say_json
from gateway.cli.token_report import cost_lines, costs_json
from gateway.cli.toolset_option import ToolsetName, naming_toolset, reached_of
from gateway.config.schema import Settings
from gateway.content.shaping import Shaped
from gateway.content.shaping.result_costs import result_costs
from gateway.content.shaping.shape_for_readers import shape_for_readers
from gateway.core.apps import Audience
from gateway.core.model.caller import Caller
from gateway.core.model.effects import Kept
from gateway.core.model.envelope import Envelope
from gateway.core.model.revisions import REVISIONS
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift
from gateway.core.tools.arguments import unmarked_handles
from gateway.core.wording import counted, plain
from gateway.errors import UnknownTool
from gateway.runtime import Gateway, run_gateway

_HANDLES = 3
_EXAMPLE = '{"path": "a.png"}'


@dataclass(frozen=True)
class _Called:
    """The outcome of the call: the result from the server, the result shaped for every profile, and its reader."""

    raw: Mapping[str, Any]
    shaped: Mapping[str, Shaped]
    audience: Audience
    takes_content: frozenset[str]
    """The profiles whose hosts are offered a tool that takes handles."""
    notes: Sequence[str] = ()
    """What was noticed about the arguments."""


def call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool, as listed by `mcp-gateway tools`.")],
    arguments: Annotated[
        str, typer.Argument(metavar="JSON", help="Its arguments, a JSON object; - reads stdin.")
    ] = "{}",
    config: ConfigFile = None,
    upstream: UpstreamUrls = None,
    profile: Annotated[ProfileNames, profiles_option()] = None,
    revision: Revision = REVISIONS[-1],
    app: WithPages = False,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Save pictures, sound and files in this directory.")
    ] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Also show what it costs each model, as it was given and as it is sent.")
    ] = False,
    toolset: ToolsetName = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the call, if a rule wants that.")] = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Call a tool, and show what a host would be sent.

    Text is shown as it is, anything else as a line in <>.

    Only the upstream that has the tool is started, for this call alone; a running gateway is not used. Handles in
    the result work afterwards only if `[store] url` keeps content for longer than this command runs.
    """
    parsed, asked = _arguments(arguments), the_profiles(profile)
    given = GivenOptions(config, upstream or (), asked, revision, app, toolset)
    showing = Showing(save=save, tokens=tokens, verbose=verbose, as_json=as_json)
    return call_and_show(settings_for(config, upstream), tool, parsed, given, showing, approve=approve)


@dataclass(frozen=True)
class Showing:
    """How a result is shown: `save` is the folder for its media."""

    save: Path | None = None
    tokens: bool = False
    verbose: bool = False
    as_json: bool = False


def call_and_show(
    settings: Settings,
    tool: str,
    arguments: dict[str, Any],
    given: GivenOptions,
    showing: Showing,
    *,
    approve: bool = False,
) -> int:
    """Call a tool, show what hosts would be sent, and return the exit code."""
    save, verbose, as_json = showing.save, showing.verbose, showing.as_json
    asked, app = given.profiles, given.app
    every = frozenset(settings.upstreams)
    settings = reached_of(settings, () if given.toolset is None else (given.toolset,))
    hidden = every - set(settings.upstreams)
    if approve:
        settings = _with_approval(settings)
    profiles = chosen_profiles(settings, asked, given.revision)
    tell_of_pages(profiles, app, verbose=verbose)
    wait = Wait(visible=not as_json, ctrl_c="end")
    ended = run_until_signal(
        lambda: _called(settings, tool, arguments, profiles, wait, given, hidden, verbose=verbose),
    )
    if isinstance(ended, int):
        return ended
    if ended.audience != "app" and (ALL not in asked or ended.audience == "both"):
        tell_what_is_without_pages(profiles, app, every=ALL in asked)
    several = ALL in asked or len(asked) > 1
    unsaved: list[str] = []
    if as_json:
        shown: list[dict[str, Any]] = []
        for name, shaped in ended.shaped.items():
            saved = _saved(shaped, tool, name, save, several)
            unsaved += [] if saved else [name]
            costs = result_costs(shaped, profiles[name], settings.gateway.model)
            shown.append({**_as_json(name, shaped, saved, tool, ended), "tokens": costs_json(costs)})
        # Several include `passthrough`; with a single one, `explain` needs the original to start from.
        say_json(shown if several else {**shown[0], "original": ended.raw})
    else:
        for names, _ in grouped({name: _sight(shaped) for name, shaped in ended.shaped.items()}):
            shaped = ended.shaped[names[0]]
            saved = _saved(shaped, tool, names[0], save, several)
            unsaved += [] if saved else names
            _say(names if several else (), lift(shaped.result), saved, verbose)
            if showing.tokens:
                for line in cost_lines(result_costs(shaped, profiles[names[0]], settings.gateway.model)):
                    say(line)
    if save is not None and unsaved:
        remark(_nothing_saved(profile_names(unsaved, verbose=verbose), lift(ended.raw)))
    _tell_of_result(settings, ended, profiles, verbose=verbose)
    _tell_of_unknown_handles(settings, ended, arguments)
    return FAILED if ended.raw.get("isError") is True else DONE


def _tell_of_result(settings: Settings, ended: _Called, profiles: Mapping[str, Profile], *, verbose: bool) -> None:
    """Say on stderr what the result does not show: of pictures, of the arguments, and of handles."""
    sent = {name: (profiles[name], one.result) for name, one in ended.shaped.items()}
    tell_of_hidden_pictures(sent, verbose=verbose)
    for note in ended.notes:
        remark(f"note: {note}")
    _tell_of_handles(settings, ended.shaped.values())


def _tell_of_handles(settings: Settings, shaped: Collection[Shaped]) -> None:
    """Say on stderr if handles that were printed name nothing any more: they are in the memory of this command."""
    if not settings.store.url.startswith("memory:"):
        return
    kept = {each.handle for one in shaped for each in one.outcomes.values() if isinstance(each, Kept) and each.handle}
    sent = [str(one.result) for one in shaped]
    if handles := sorted(handle for handle in kept if any(handle in text for text in sent)):
        named = ", ".join(handles[:_HANDLES]) + (" ..." if handles[_HANDLES:] else "")
        is_one = len(handles) == 1
        words = f"note: {named} {'has' if is_one else 'have'} ended with this command, as the store is in memory"
        remark(f'{words}: [store] url = "file:///..." keeps what {"it names" if is_one else "they name"}')


def _tell_of_unknown_handles(settings: Settings, ended: _Called, arguments: Mapping[str, Any]) -> None:
    """Say on stderr why handles in the arguments of a failed call can name nothing: this command's memory is empty."""
    if not settings.store.url.startswith("memory:") or ended.raw.get("isError") is not True:
        return
    if unmarked_handles(arguments, ()):
        remark(f"note: this command is a gateway of its own: {NOT_SHARED}")


def _with_approval(settings: Settings) -> Settings:
    """Return the settings with calls allowed that need an approval: whoever gives `--approve` approves this one."""
    rules = tuple(
        rule.model_copy(update={"effect": "allow"}) if rule.effect == "approve" else rule
        for rule in settings.policy.rules
    )
    return settings.model_copy(update={"policy": settings.policy.model_copy(update={"rules": rules})})


def _arguments(given: str) -> dict[str, Any]:
    text = sys.stdin.read() if given == "-" else given
    try:
        parsed = json.loads(text)
    except ValueError as error:
        refuse(f"the arguments are not JSON: {error}; give an object, as '{_EXAMPLE}'")
    if not isinstance(parsed, dict):
        refuse(f"the arguments must be a JSON object, as '{_EXAMPLE}'")
    return parsed  # pyright: ignore[reportUnknownVariableType]


def _shaping_words(done: int, count: int) -> str:
    return f"shaping for {counted(count, 'profile')}" + (f", {done} done" if done else "")


async def _called(
    settings: Settings,
    tool: str,
    arguments: dict[str, Any],
    profiles: Mapping[str, Profile],
    wait: Wait,
    given: GivenOptions,
    hidden: Collection[str],
    *,
    verbose: bool,
) -> _Called:
    """Call the tool once, and shape the raw result for every profile.

    `hidden` are the upstreams that its toolset leaves out.
    """
    from gateway.cli.argument_notes import argument_notes

    raw_settings, caller = with_raw_profile(settings, next(iter(profiles.values())))
    toolsets = () if given.toolset is None else (given.toolset,)
    caller = replace(declaring(caller, given.app), toolsets=toolsets)
    async with (
        run_gateway(raw_settings, asleep=True, expected=expected(caller, given.app)) as gateway,
        open_shaper(settings, gateway.store) as shaper,
    ):
        with command_remedies(settings.upstreams, given), naming_toolset(settings, given.toolset):
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
            command_remedies(settings.upstreams, given),
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
        return _Called(raw, shaped, audience, takes, tuple(notes))


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


def _sight(shaped: Shaped) -> tuple[str, list[str]]:
    """Return the visible parts of a result, to compare it with others: its lines, and its media."""
    sent = lift(shaped.result)
    return "\n".join(result_lines(sent, {})), [found.data for _, found in media_of(sent)]


def _saved(shaped: Shaped, tool: str, name: str, folder: Path | None, several: bool) -> Mapping[int, Path]:
    """Save the media of a result, and return the files by block index."""
    return save_media(lift(shaped.result), folder, f"{tool}-{name}" if several else tool) if folder is not None else {}


def _nothing_saved(names: str, given: Envelope) -> str:
    """Explain why there is no file for the hosts of these profiles."""
    words = f"nothing to save for {names}: no pictures, sound or files are sent there"
    return f"{words} (what the server gave: --profile {AS_GIVEN})" if any(media_of(given)) else words


def _say(names: Sequence[str], sent: Envelope, saved: Mapping[int, Path], verbose: bool) -> None:
    """Print what the hosts of these profiles would all be sent; without names, it is the only one."""
    if names:
        say(heading(names, verbose=verbose))
    for line in result_lines(sent, saved):
        say(line)
    if names:
        say()


def _as_json(name: str, shaped: Shaped, saved: Mapping[int, Path], tool: str, ended: _Called) -> dict[str, Any]:
    return {
        "profile": name,
        "tool": tool,
        "audience": ended.audience,
        "takes_content": name in ended.takes_content,
        "result": shaped.result,
        "notes": [note.model_dump(exclude_none=True) for note in shaped.notes],
        "files": [str(path) for path in saved.values()],
    }
