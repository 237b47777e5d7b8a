"""`mcp-gateway explain`: show step by step how a profile shapes a recorded result."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.command_context import (
    ALL,
    AS_GIVEN,
    AsJson,
    ConfigFile,
    ProfileNames,
    Revision,
    chosen_profiles,
    open_shaper,
    profiles_option,
    run_until_signal,
    settings_if_any,
    the_profiles,
)
from gateway.cli.exit_codes import DONE, refuse
from gateway.cli.pages import WithPages, callers, reader_lines, shows_pages, tell_of_pages, tell_what_is_without_pages
from gateway.cli.print_result import Verbose, block_lines, grouped, heading
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.cli.token_report import cost_line, cost_lines, costs_json
from gateway.config.schema import Settings
from gateway.content.shaping import Shaped
from gateway.content.shaping.result_costs import ResultCost, result_costs
from gateway.content.shaping.shape_for_readers import shape_for_readers
from gateway.core.apps import Audience
from gateway.core.effect_words import effect_words, outcome_words
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.effects import (
    ConvertAudio,
    Effect,
    FitImage,
    Outcome,
    Rendered,
    RenderPages,
)
from gateway.core.model.json_values import as_object, is_dict, is_list
from gateway.core.model.revisions import REVISIONS
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift
from gateway.errors import ConfigError

if TYPE_CHECKING:
    from gateway.upstream.recording.recorded_calls import RecordedCall

_DATA = frozenset({"data", "contents", "texts"})
"""Fields of effects and outcomes that hold content, which the envelope and the result show already."""
_AUDIENCES: tuple[Audience, ...] = ("model", "both", "app")
_BRIEF = 80
"""Characters of arguments and outcomes in the list of recorded calls."""
_MEMBERS = frozenset({"content", "structuredContent", "isError", "resultType", "_meta"})
"""A CallToolResult has at least one of these members."""


def explain(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A CallToolResult, or the output of `call --json`; - reads stdin."),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="DIR", help="A recording (serve --record), to list its calls.")
    ] = None,
    call: Annotated[int | None, typer.Option("--call", metavar="N", help="Explain this call of the recording.")] = None,
    config: ConfigFile = None,
    profile: Annotated[ProfileNames, profiles_option()] = None,
    revision: Revision = REVISIONS[-1],
    app: WithPages = False,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Show what it costs each model, as it was given and as it is sent.")
    ] = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Show how a recorded result is read, how it is changed, and what a host would be sent.

    The envelope is the result as it was read, media and store work is what had to be done for it and how it ended (left
    out if there was none; in JSON it is called effects), and notes say what the host would not get as it was.

    With --replay, it lists the calls of a recording, or with --call explains one of them.

    Without a file, the result is read from a pipe: mcp-gateway call TOOL --json | mcp-gateway explain --profile codex

    The output of `call --json` says whether the tool has a page, or is only for pages. With any other result, --app
    assumes that its tool has one. For these, it also shows what the model reads and what the page reads.
    """
    if call is not None and replay is None:
        refuse("--call needs --replay DIR, the recording that it is in")
    if replay is not None and call is None:
        return _list_calls(replay, as_json=as_json)
    asked = the_profiles(profile)
    recorded = _given(file) if replay is None or call is None else _of_call(replay, call)
    settings = settings_if_any(config).settings
    profiles = chosen_profiles(settings, asked, revision)
    tell_of_pages(profiles, app, verbose=verbose)
    if recorded.audience == "app":
        profiles = callers(profiles, recorded.tool, app, verbose=verbose)
    elif ALL not in asked or recorded.audience == "both":
        tell_what_is_without_pages(profiles, app, every=ALL in asked)
    ended = run_until_signal(lambda: _shaped(settings, recorded, profiles, app))
    if isinstance(ended, int):
        return ended
    costs = {name: result_costs(shaped, profiles[name], settings.gateway.model) for name, shaped in ended.items()}
    if as_json:
        every = [_as_json(name, shaped, costs[name]) for name, shaped in ended.items()]
        say_json(every if ALL in asked or len(asked) > 1 else every[0])
        return DONE
    audience = _audience(recorded, app)
    explained = {
        name: [
            *_lines(shaped),
            *reader_lines(shaped.result, profiles[name], audience, app),
            *(_part("tokens", cost_lines(costs[name])) if tokens else ()),
        ]
        for name, shaped in ended.items()
    }
    for names, lines in grouped(explained):
        say(heading(names, verbose=verbose))
        for line in lines:
            say(line)
        if (line := cost_line([costs[name] for name in names])) and not tokens and ALL not in asked:
            say(f"costs {line} (--tokens shows more)")
        say()
    return DONE


def _given(file: str | None) -> "_Recorded":
    if file is None and sys.stdin.isatty():
        raise typer.TyperException("Missing argument 'FILE': a recorded result; or pipe one in.")
    return _recorded(file or "-")


def _list_calls(folder: Path, *, as_json: bool) -> int:
    """Print the calls of a recording, with their numbers."""
    from gateway.upstream.recording.recorded_calls import recorded_calls

    calls = recorded_calls(folder.absolute())
    if as_json:
        say_json(
            [
                {"call": one.number, "upstream": one.upstream, "tool": one.tool, "arguments": one.arguments()}
                | {"outcome": one.outcome}
                for one in calls
            ]
        )
    else:
        rows = [(str(one.number), plain(one.upstream, 40), plain(one.tool, 60), *_brief(one)) for one in calls]
        say_table(("call", "server", "tool", "arguments", "outcome"), rows, unfolded=3)
    return DONE


def _brief(call: "RecordedCall") -> tuple[str, str]:
    return plain(json.dumps(call.arguments(), ensure_ascii=False), _BRIEF), plain(call.outcome, _BRIEF)


def _of_call(folder: Path, number: int) -> "_Recorded":
    from gateway.upstream.recording.recorded_calls import call_of

    found = call_of(folder.absolute(), number)
    result = found.result()
    if result is None:
        raise ConfigError(f"has no result of call {number}: {found.outcome}", where=str(folder))
    return _Recorded(result, found.tool)


@dataclass(frozen=True)
class _Recorded:
    """A recorded result, with the tool and the reader of its results, if `call --json` recorded them."""

    result: dict[str, Any]
    tool: str = ""
    audience: Audience | None = None
    takes_content: bool = False
    """Whether the host is offered a tool that takes handles."""


def _recorded(file: str) -> _Recorded:
    """Return the result in the file: bare, in a JSON-RPC response, or in the output of `call --json`."""
    where = "stdin" if file == "-" else file
    try:
        content = sys.stdin.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {(error.strerror or 'unknown cause').lower()}", where=where) from None
    if not content.strip():
        raise ConfigError("is empty", where=where)
    try:
        recorded: Any = json.loads(content)
    except ValueError as error:
        raise ConfigError(f"is not JSON: {error}", where=where) from None
    if is_list(recorded):  # for several profiles: take the unchanged result, or else the first
        several = [one for one in recorded if is_dict(one)]
        recorded = next((one for one in several if one.get("profile") == AS_GIVEN), several[0] if several else None)
    found = as_object(recorded)
    result = _result_in(found)
    if result is None:
        raise ConfigError("does not hold a CallToolResult", where=where, remedy='an object with a list "content"')
    audience: Audience | None = next((known for known in _AUDIENCES if known == found.get("audience")), None)
    return _Recorded(result, str(found.get("tool", "")), audience, found.get("takes_content") is True)


def _result_in(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the CallToolResult, bare or wrapped."""
    if "jsonrpc" in found:
        return found["result"] if isinstance(found.get("result"), dict) else None
    if isinstance(found.get("result"), dict) and isinstance(found.get("profile"), str):
        if isinstance(found.get("original"), dict):
            return found["original"]
        if found["profile"] != AS_GIVEN and found.get("audience") != "app":
            remark(f"note: this result was shaped for {found['profile']!r} already; what the server gave is not known")
        return found["result"]
    return dict(found) if not _MEMBERS.isdisjoint(found) else None


async def _shaped(
    settings: Settings, recorded: _Recorded, profiles: Mapping[str, Profile], app: bool
) -> Mapping[str, Shaped]:
    audience = _audience(recorded, app)
    async with open_shaper(settings) as shaper:
        owner = Caller().principal
        return {
            name: await shape_for_readers(
                shaper,
                recorded.result,
                profile,
                owner,
                shows_pages=shows_pages(profile, app),
                audience=audience,
                takes_content=recorded.takes_content,
            )
            for name, profile in profiles.items()
        }


def _audience(recorded: _Recorded, app: bool) -> Audience:
    return recorded.audience or ("both" if app else "model")


def _lines(shaped: Shaped) -> Iterator[str]:
    read, sent = list(block_lines(shaped.envelope)), list(block_lines(lift(shaped.result)))
    yield from _part("envelope", read)
    if shaped.effects:
        yield from _part("media and store work", (_effect_line(effect, shaped.outcomes) for effect in shaped.effects))
    notes = (
        f"{note.kind}{'' if note.block is None else f' (block {note.block})'}: {note.text}" for note in shaped.notes
    )
    yield from _part("notes", notes)
    yield from _part("sent", sent)
    if not shaped.effects and not shaped.notes and sent == read:
        yield "nothing had to be changed for this host"


def _part(heading: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{heading}:"
    for line in list(lines) or ["none"]:
        yield f"  {line}"


def _effect_line(effect: Effect, outcomes: Mapping[str, Outcome]) -> str:
    return f"{effect.key}: {effect_words(effect)} -> {outcome_words(outcomes.get(effect.key))}"


def _as_json(name: str, shaped: Shaped, costs: Sequence[ResultCost]) -> dict[str, Any]:
    return {
        "profile": name,
        "envelope": shaped.envelope.model_dump(mode="json", by_alias=True),
        "effects": [{"effect": type(effect).__name__, **_facts(effect)} for effect in shaped.effects],
        "outcomes": {
            key: {"outcome": type(outcome).__name__, **_facts(outcome)} for key, outcome in shaped.outcomes.items()
        },
        "result": shaped.result,
        "notes": [note.model_dump(exclude_none=True) for note in shaped.notes],
        "tokens": costs_json(costs),
    }


def _facts(value: Effect | Outcome) -> dict[str, Any]:
    """Return the fields of an effect or outcome that are not content."""
    if isinstance(value, Rendered):
        return {"images": [{"outcome": type(image).__name__, **_facts(image)} for image in value.images]}
    told = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in _DATA}
    if isinstance(value, FitImage | RenderPages | ConvertAudio):
        told["target"] = {field.name: getattr(value.target, field.name) for field in fields(value.target)}
    return told
