"""`mcp-gateway explain`: a recorded result, step by step, as a profile shapes it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.failing import DONE
from gateway.cli.showing import block_lines
from gateway.cli.started import (
    ALL,
    AsJson,
    ConfigFile,
    Revision,
    chosen_profiles,
    open_shaper,
    run_until_signal,
    settings_if_any,
)
from gateway.cli.terminal import say, say_json
from gateway.config.schema import Settings
from gateway.core.lifting import lift
from gateway.core.model.caller import REVISIONS, Caller
from gateway.core.model.effects import Effect, Failed, FitImage, Fitted, Keep, Kept, Outcome
from gateway.core.model.profile import Profile
from gateway.core.wording import facts, pixel_words
from gateway.errors import ConfigError
from gateway.shaping import Shaped

_DATA = frozenset({"data"})
"""Fields of effects and outcomes that hold content: they stand in the envelope and in the result already."""


def explain(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CallToolResult as JSON; `-`: from stdin.")],
    config: ConfigFile = None,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help=f"The host; {ALL!r}: every one.")
    ] = "default",
    revision: Revision = REVISIONS[-1],
    as_json: AsJson = False,
) -> int:
    """Show how a recorded result is read, what is done to it, and what a host would be sent."""
    result = _recorded(file)
    settings = settings_if_any(config).settings
    profiles = chosen_profiles(settings, profile, revision)
    ended = run_until_signal(lambda: _shaped(settings, result, profiles))
    if isinstance(ended, int):
        return ended
    if as_json:
        explained = [_as_json(name, shaped) for name, shaped in ended.items()]
        say_json(explained if profile == ALL else explained[0])
        return DONE
    for name, shaped in ended.items():
        _say_all(name, shaped)
    return DONE


def _recorded(file: str) -> dict[str, Any]:
    """The result in the file: as it is, or inside a JSON-RPC response."""
    where = "stdin" if file == "-" else file
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        recorded: Any = json.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot be read: {(error.strerror or 'unknown cause').lower()}", where=where) from None
    except ValueError as error:
        raise ConfigError(f"is not JSON: {error}", where=where) from None
    if isinstance(recorded, dict) and "jsonrpc" in recorded:
        recorded = recorded.get("result")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(recorded, dict):
        raise ConfigError("holds no CallToolResult", where=where, remedy='it is an object with a list "content"')
    return recorded  # pyright: ignore[reportUnknownVariableType]


async def _shaped(settings: Settings, result: dict[str, Any], profiles: Mapping[str, Profile]) -> Mapping[str, Shaped]:
    async with open_shaper(settings) as shaper:
        owner = Caller().principal
        return {name: await shaper.shape(result, profile, owner=owner) for name, profile in profiles.items()}


def _say_all(name: str, shaped: Shaped) -> None:
    say(f"== {name}")
    _say_part("envelope", block_lines(shaped.envelope))
    _say_part("effects", (_effect_line(effect, shaped.outcomes) for effect in shaped.effects))
    notes = (
        f"{note.kind}{'' if note.block is None else f' (block {note.block})'}: {note.text}" for note in shaped.notes
    )
    _say_part("notes", notes)
    _say_part("sent", block_lines(lift(shaped.result)))
    say()


def _say_part(heading: str, lines: Any) -> None:
    say(f"{heading}:")
    for line in list(lines) or ["none"]:
        say(f"  {line}")


def _effect_line(effect: Effect, outcomes: Mapping[str, Outcome]) -> str:
    match effect:
        case FitImage(target=target):
            edge = f"at most {target.max_edge:,} px" if target.max_edge else None
            most = f"at most {target.max_bytes:,} bytes" if target.max_bytes else None
            wanted = f"fit {effect.media_type} to {facts(' or '.join(target.types), edge, most)}"
        case Keep():
            wanted = f"keep {facts(effect.media_type, effect.name)}"
    return f"{effect.key}: {wanted} -> {_outcome_words(outcomes.get(effect.key))}"


def _outcome_words(outcome: Outcome | None) -> str:
    match outcome:
        case Fitted():
            return f"{outcome.media_type}, {pixel_words(outcome.original)} became {pixel_words(outcome.pixels)}"
        case Kept():
            return f"handle {outcome.handle}"
        case Failed():
            return f"failed: {outcome.reason}"
        case None:
            return "not performed"


def _as_json(name: str, shaped: Shaped) -> dict[str, Any]:
    return {
        "profile": name,
        "envelope": shaped.envelope.model_dump(mode="json", by_alias=True),
        "effects": [{"effect": type(effect).__name__, **_told(effect)} for effect in shaped.effects],
        "outcomes": {
            key: {"outcome": type(outcome).__name__, **_told(outcome)} for key, outcome in shaped.outcomes.items()
        },
        "result": shaped.result,
        "notes": [note.model_dump(exclude_none=True) for note in shaped.notes],
    }


def _told(value: Effect | Outcome) -> dict[str, Any]:
    """The fields of an effect or outcome that are not content."""
    told = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in _DATA}
    if isinstance(value, FitImage):
        told["target"] = {field.name: getattr(value.target, field.name) for field in fields(value.target)}
    return told
