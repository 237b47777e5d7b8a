"""`mcp-gateway profiles`: list the known hosts, and show what is known about each."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
import typer.core

from gateway.cli.command_context import AsJson, ConfigFile, settings_if_any
from gateway.cli.completion import profile_names
from gateway.cli.exit_codes import DONE
from gateway.cli.terminal import say, say_json, say_table
from gateway.config.builtin_profiles import builtin_profiles, load_profiles
from gateway.core.profiles.host_profiles import PATHS, value_at
from gateway.core.profiles.match_profile import find_profile, known_name, namesake
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import (
    clients,
    declares_pages,
    for_models,
    known_for_pages,
    pages,
    read_with_page,
    words_at,
)

_HEADINGS = ("profile", "host", "images", "text", "result", "pages", "based on", "for clients named")
_PAGE_HEADINGS = ("--profile", "host", "shows pages", "declares", "the model reads")
_WIDE = 150
"""Width of a terminal, in characters, in which a row with all of these is still readable."""
_FIRST = 4
"""The number of them shown in a narrower terminal."""

_NOT_SHOWN = {"line": "named in a line", "file": "as the path of a file"}


class _Shown(typer.core.TyperGroup):
    """Shows the profile whose name is given where a command would be."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), None)
        is_profile = first not in self.commands and known_name(builtin_profiles(), first or "") is not None
        return super().parse_args(ctx, ["show", *args] if is_profile else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # Any other word is a profile too, of the user's own or misspelled: `show` suggests similar ones.
        if args and args[0] not in self.commands:
            file = ctx.params.get("config")
            args = ["show", *args, *(["--config", str(file)] if file is not None else [])]
        return super().resolve_command(ctx, args)


WithPageTable = Annotated[
    bool, typer.Option("--app", help="List the hosts of which it is known whether they show pages (MCP Apps).")
]

_HELP = "List the host profiles, built-in ones and your own, or show one."

app = typer.Typer(cls=_Shown, help=_HELP, invoke_without_command=True)


@app.callback()
def listed(
    context: typer.Context, config: ConfigFile = None, with_pages: WithPageTable = False, as_json: AsJson = False
) -> int:
    """List the host profiles."""
    return list_profiles(config, with_pages, as_json) if context.invoked_subcommand is None else DONE


@app.command("list")
@app.command("ls", hidden=True)
def list_profiles(config: ConfigFile = None, with_pages: WithPageTable = False, as_json: AsJson = False) -> int:
    """List the host profiles, as `profiles` alone does."""
    profiles = load_profiles(settings_if_any(config).settings)
    if with_pages:
        _say_pages(known_for_pages(profiles), as_json=as_json)
        return DONE
    rows = [_row(profile, profiles) for profile in profiles.values()]
    if as_json:
        say_json([_summary(profile) for profile in profiles.values()])
    elif sys.stdout.isatty():
        _say_to_people(rows, profiles)
    else:
        say_table(_HEADINGS, rows)
    return DONE


def _say_pages(known: Sequence[Profile], *, as_json: bool) -> None:
    """Print what is known of hosts and pages, in 80 columns of a terminal."""
    if as_json:
        say_json([{"name": one.name, "title": one.title, **_of_pages(one)} for one in known])
        return
    rows = [(one.name, one.title, pages(one), declares_pages(one), read_with_page(one)) for one in known]
    say_table(_PAGE_HEADINGS, rows)
    if sys.stdout.isatty():
        say()
        say("--app makes `tools`, `call`, `run`, `explain` and `read` treat a host as one")
        say("that declares that it shows pages. The data is structured content.")


def _of_pages(profile: Profile) -> dict[str, Any]:
    rules = profile.apps
    facts = {"shows": rules.shows, "sessions": rules.sessions, "declares": rules.declares}
    rights = {
        "loads_domains": rules.loads_domains,
        "runs_eval": rules.runs_eval,
        "runs_data": rules.runs_data,
        "grants": rules.grants,
    }
    sent = {"sent_pages": rules.host, "embedded": rules.embedded, "structured_content": profile.structured.host}
    return facts | rights | sent


def _say_to_people(rows: Sequence[tuple[str, ...]], profiles: Mapping[str, Profile]) -> None:
    """Print the list to fit the terminal, with notes on names that may be misunderstood."""
    is_wide = shutil.get_terminal_size().columns >= _WIDE
    shown = len(_HEADINGS) if is_wide else _FIRST
    say_table(_HEADINGS[:shown], [row[:shown] for row in rows])
    say()
    for name in profiles:
        if (other := namesake(profiles, name)) is not None:
            say(f"note: {_not_the_same(name, other)}")
    if not is_wide:
        say("more: `mcp-gateway profiles show NAME`, or this list in a wider terminal;")
        say("which hosts show pages: `mcp-gateway profiles --app`")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.", autocompletion=profile_names)],
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Show every value of a profile, with its evidence."""
    profiles = load_profiles(settings_if_any(config).settings)
    profile = find_profile(profiles, name)
    if as_json:
        say_json(profile.model_dump(mode="json"))
        return DONE
    say(f"{profile.name}: {profile.title}")
    if profile.about:
        say(" ".join(profile.about.split()))
    say()
    say(f"chosen for  {', '.join(clients(profile, profiles)) or 'nobody by itself'}")
    for named, other in _namesakes(profile, profiles):
        say(f"note        {_not_the_same(named, other)}")
    say(f"based on    {' > '.join(profile.lineage) or 'nothing'}")
    for variant, models in profile.variants.items():
        say(f"variant     {variant} {for_models(models)}")
    for path in PATHS:
        say()
        for line in _explained(profile, path):
            say(line)
    return DONE


@app.command("set")
def set_values(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.", autocompletion=profile_names)],
    values: Annotated[
        list[str], typer.Argument(metavar="PATH=VALUE...", help="Values. An empty one is that of the parent.")
    ],
    new_name: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Name of the profile to make. Default: my-NAME.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change of the file, and write nothing.")] = False,
    config: ConfigFile = None,
) -> int:
    """Change values of your own profile, or make one of any other.

    A profile of the configuration is changed there; its comments and order stay. Of a built-in profile, one of your
    own is made, which is used for the same clients.

    Example: mcp-gateway profiles set claude-code image.max_edge=1024
    """
    from gateway.cli.edit_profile import edit_and_say

    return edit_and_say(name, values, new_name, config, dry_run=dry_run)


def _namesakes(profile: Profile, profiles: Mapping[str, Profile]) -> Iterator[tuple[str, str]]:
    """Yield pairs of profiles, one of them this one: a client with the first one's name gets the second."""
    for name in profiles:
        other = namesake(profiles, name)
        if other is not None and profile.name in (name, other):
            yield name, other


def _not_the_same(name: str, other: str) -> str:
    return f"a client that calls itself {name!r} gets the profile {other!r}, not the one that is called {name!r}"


def _explained(profile: Profile, path: str) -> Iterator[str]:
    yield f"{path} = {words_at(profile, path)}"
    evidence = profile.evidence.get(path)
    if evidence is None:
        plain = value_at(Profile(name=profile.name), path) == value_at(profile, path)
        yield "    as it is without a profile" if plain else "    set without evidence"
        return
    on = f" on {evidence.host_version}" if evidence.host_version else ""
    yield f"    {evidence.level.replace('_', ' ')}{on}, checked {evidence.checked}: {evidence.source}"


def _summary(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "title": profile.title,
        "builtin": profile.name in builtin_profiles(),
        "extends": list(profile.lineage),
        "match": [match.model_dump(exclude_none=True) for match in profile.match],
        "variants": {name: list(models) for name, models in profile.variants.items()},
    }


def _row(profile: Profile, profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    image = profile.image
    kinds = ", ".join(kind.removeprefix("image/") for kind in image.types) or "as they are"
    limits = [f"{image.max_edge:,} px" if image.max_edge else "", f"{image.max_count}" if image.max_count else ""]
    return (
        profile.name,
        profile.title,
        "; ".join([kinds, *filter(None, limits)]) if image.show == "native" else _NOT_SHOWN[image.show],
        _limit(profile.text.max_chars),
        _limit(profile.limits.result_chars),
        pages(profile),
        profile.lineage[0] if profile.lineage else "",
        ", ".join(clients(profile, profiles)),
    )


def _limit(characters: int | None) -> str:
    return "no limit" if characters is None else f"{characters:,}"
