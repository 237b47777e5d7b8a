"""`mcp-gateway call`: call a tool once, and see what each host would get of the result."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.failing import DONE, FAILED, refuse
from gateway.cli.saving import save_media
from gateway.cli.showing import result_lines
from gateway.cli.started import (
    ALL,
    AsJson,
    ConfigFile,
    Revision,
    UpstreamUrls,
    chosen_profiles,
    open_shaper,
    run_until_signal,
    settings_for,
    with_raw_profile,
)
from gateway.cli.terminal import say, say_json
from gateway.config.schema import Settings
from gateway.core.lifting import lift
from gateway.core.model.caller import REVISIONS, Caller
from gateway.core.model.profile import Profile
from gateway.runtime import open_gateway
from gateway.shaping import Shaped


@dataclass(frozen=True)
class _Called:
    """What came of the call: whether the tool reports an error, and the result in the shape of every profile."""

    failed: bool
    shaped: Mapping[str, Shaped]


def call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool's name, as `mcp-gateway tools` lists it.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="Its arguments, an object; `-`: from stdin.")] = "{}",
    config: ConfigFile = None,
    upstream: UpstreamUrls = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help=f"The host (else: default); {ALL!r}: every one.")
    ] = None,
    revision: Revision = REVISIONS[-1],
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Write pictures, sound and files there.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Call a tool, and show what a host would be sent."""
    parsed = _arguments(arguments)
    settings = settings_for(config, upstream)
    profiles = chosen_profiles(settings, profile or settings.gateway.profile or "default", revision)
    ended = run_until_signal(lambda: _called(settings, tool, parsed, profiles))
    if isinstance(ended, int):
        return ended
    several = profile == ALL
    shown = [_show(name, shaped, tool, save, several, as_json) for name, shaped in ended.shaped.items()]
    if as_json:
        say_json(shown if several else shown[0])
    return FAILED if ended.failed else DONE


def _arguments(given: str) -> dict[str, Any]:
    text = sys.stdin.read() if given == "-" else given
    try:
        parsed = json.loads(text)
    except ValueError as error:
        refuse(f"the arguments are not JSON: {error}")
    if not isinstance(parsed, dict):
        refuse('the arguments must be a JSON object, as {"path": "a.png"}')
    return parsed  # pyright: ignore[reportUnknownVariableType]


async def _called(settings: Settings, tool: str, arguments: dict[str, Any], profiles: Mapping[str, Profile]) -> _Called:
    """Call once, take the result as it came, and shape it for every profile."""
    patient, caller = with_raw_profile(settings, next(iter(profiles.values())))
    async with open_gateway(patient) as router, open_shaper(settings) as shaper:
        raw = await router.respond("tools/call", {"name": tool, "arguments": arguments}, caller)
        owner = Caller().principal
        shaped = {name: await shaper.shape(raw, profile, owner=owner) for name, profile in profiles.items()}
        return _Called(raw.get("isError") is True, shaped)


def _show(name: str, shaped: Shaped, tool: str, folder: Path | None, several: bool, as_json: bool) -> dict[str, Any]:
    """Save and say one profile's result; returns it as JSON."""
    sent = lift(shaped.result)
    saved: Mapping[int, Path] = (
        save_media(sent, folder, f"{tool}-{name}" if several else tool) if folder is not None else {}
    )
    if not as_json:
        if several:
            say(f"== {name}")
        for line in result_lines(sent, saved):
            say(line)
        if several:
            say()
    return {
        "profile": name,
        "result": shaped.result,
        "notes": [note.model_dump(exclude_none=True) for note in shaped.notes],
        "files": [str(path) for path in saved.values()],
    }
