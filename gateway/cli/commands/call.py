"""`mcp-gateway call`: call a tool once, and show what each host would be sent."""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.called_tool import CalledTool, call_for_profiles
from gateway.cli.command_context import (
    ALL,
    AS_GIVEN,
    AsJson,
    ConfigFile,
    ProfileNames,
    Revision,
    UpstreamUrls,
    chosen_profiles,
    profiles_option,
    run_until_signal,
    settings_for,
    the_profiles,
)
from gateway.cli.command_remedies import NOT_SHARED
from gateway.cli.exit_codes import DONE, FAILED, refuse
from gateway.cli.given_options import GivenOptions
from gateway.cli.pages import (
    WithPages,
    reader_lines,
    tell_of_hidden_pictures,
    tell_of_pages,
    tell_what_is_without_pages,
)
from gateway.cli.print_result import Verbose, grouped, heading, profile_names, result_lines
from gateway.cli.progress import Wait
from gateway.cli.save_media import media_of, save_media
from gateway.cli.server_completion import tool_names
from gateway.cli.terminal import remark, say, say_json
from gateway.cli.token_report import cost_lines, costs_json
from gateway.cli.toolset_option import ToolsetName, reached_of
from gateway.config.schema import Settings
from gateway.content.shaping import Shaped
from gateway.content.shaping.result_costs import result_costs
from gateway.core.model.effects import Kept
from gateway.core.model.envelope import Envelope
from gateway.core.model.revisions import REVISIONS
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift
from gateway.core.tools.arguments import unmarked_handles

_HANDLES = 3
_EXAMPLE = '{"path": "a.png"}'


def call(
    tool: Annotated[
        str,
        typer.Argument(
            metavar="TOOL", help="Name of the tool, as listed by `mcp-gateway tools`.", autocompletion=tool_names
        ),
    ],
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
        lambda: call_for_profiles(settings, tool, arguments, profiles, wait, given, hidden, verbose=verbose),
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
        unsaved = _say_results(settings, tool, ended, profiles, showing, app, several=several)
    if save is not None and unsaved:
        remark(_nothing_saved(profile_names(unsaved, verbose=verbose), lift(ended.raw)))
    _tell_of_result(settings, ended, profiles, verbose=verbose)
    _tell_of_unknown_handles(settings, ended, arguments)
    return FAILED if ended.raw.get("isError") is True else DONE


def _say_results(
    settings: Settings,
    tool: str,
    ended: CalledTool,
    profiles: Mapping[str, Profile],
    showing: Showing,
    app: bool,
    *,
    several: bool,
) -> list[str]:
    """Print what hosts are sent, equal ones once, with their names if several were asked for.

    Return the profiles of which no media was saved.
    """
    unsaved: list[str] = []
    read = {
        name: list(reader_lines(one.result, profiles[name], ended.audience, app)) for name, one in ended.shaped.items()
    }
    for names, _ in grouped({name: (*_sight(shaped), read[name]) for name, shaped in ended.shaped.items()}):
        shaped = ended.shaped[names[0]]
        saved = _saved(shaped, tool, names[0], showing.save, several)
        unsaved += [] if saved else names
        _say(names if several else (), lift(shaped.result), saved, showing.verbose)
        for line in read[names[0]]:
            say(line)
        if showing.tokens:
            for line in cost_lines(result_costs(shaped, profiles[names[0]], settings.gateway.model)):
                say(line)
    return unsaved


def _tell_of_result(settings: Settings, ended: CalledTool, profiles: Mapping[str, Profile], *, verbose: bool) -> None:
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


def _tell_of_unknown_handles(settings: Settings, ended: CalledTool, arguments: Mapping[str, Any]) -> None:
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


def _as_json(name: str, shaped: Shaped, saved: Mapping[int, Path], tool: str, ended: CalledTool) -> dict[str, Any]:
    return {
        "profile": name,
        "tool": tool,
        "audience": ended.audience,
        "takes_content": name in ended.takes_content,
        "result": shaped.result,
        "notes": [note.model_dump(exclude_none=True) for note in shaped.notes],
        "files": [str(path) for path in saved.values()],
    }
