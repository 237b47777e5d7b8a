"""Pages (MCP Apps) on the command line: the option `--app`, and its effect on a profile and a caller."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from gateway.cli.print_result import profile_names
from gateway.cli.terminal import remark
from gateway.core import apps
from gateway.core.fact_words import counted, join_facts, plain, size_words
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift
from gateway.errors import UnknownTool

_WHAT_FOR = {"connect": "connects to", "resource": "loads from", "frame": "frames", "baseUri": "has its base at"}
_LONGEST = 1_000

WithPages = Annotated[
    bool,
    typer.Option("--app", help="Simulate a host that shows pages (MCP Apps)."),
]


def shows_pages(profile: Profile, app: bool) -> bool:
    """Whether to treat a host of this profile as one that shows pages: with `--app`, or if it always shows them."""
    return apps.shows_apps(apps.DECLARED if app else {}, profile.apps.host)


def declaring(caller: Caller, app: bool) -> Caller:
    """Return the caller, with `--app` as a host that declares that it shows pages."""
    return replace(caller, capabilities=apps.DECLARED) if app else caller


def tell_of_pages(profiles: Mapping[str, Profile], app: bool, *, verbose: bool = False) -> None:
    """Say on stderr for which hosts of `profiles` `--app` is a pretence, because they are known to get no pages.

    `verbose`: name all of them, however many there are.
    """
    without = [name for name, profile in profiles.items() if app and _gets_no_pages(profile)]
    if without:
        are, it = ("is", "it") if len(without) == 1 else ("are", "they")
        would = f"this is what {it} would get if {it} declared the extension (--app)"
        remark(
            f"note: {profile_names(without, verbose=verbose)} {are} known to show no pages, or to ask for none; {would}"
        )


def tell_what_is_without_pages(profiles: Mapping[str, Profile], app: bool, *, every: bool = False) -> None:
    """Say on stderr which hosts of `profiles` are treated as without pages, for want of `--app`, though they show them.

    `every`: they are all that there are, and one short line does for them.
    """
    left = {name: profile for name, profile in profiles.items() if not shows_pages(profile, app)}
    known = {name: one.apps for name, one in left.items() if one.apps.host != "never"}
    declaring = [name for name, one in known.items() if one.declares and one.shows is not False]
    showing_none = [name for name, one in known.items() if one.declares and one.shows is False]
    perhaps = [name for name, one in known.items() if one.declares is None and one.shows]
    if every and (declaring or showing_none or perhaps):
        remark("note: hosts that declare that they show pages are treated as without them: add --app")
        return
    if declaring:
        declare, it = _verb(declaring, "declares that it shows", "declare that they show")
        remark(f"note: {', '.join(declaring)} {declare} pages: --app shows what {it} with them")
    if showing_none:
        declare, it = _verb(showing_none, "declares that it shows", "declare that they show")
        none = f"though {'it is' if len(showing_none) == 1 else 'they are'} known to show none"
        remark(f"note: {', '.join(showing_none)} {declare} pages, {none}: --app shows what {it} with them")
    if perhaps:
        show, it = _verb(perhaps, "shows", "show")
        doubt = "whether that is declared is not known"
        remark(f"note: {', '.join(perhaps)} {show} pages; {doubt}: --app shows what {it} if so")


def reader_lines(result: Mapping[str, Any], profile: Profile, audience: apps.Audience, app: bool) -> Iterator[str]:
    """Yield what the model and what the page reads of a result, if there is a page and hosts of `profile` show it."""
    if audience == "model" or not shows_pages(profile, app):
        return
    for title, lines in apps.Readers(lift(result), profile, audience).sections():
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)


def tell_of_tools_with_pages(count: int, profile: Profile, command: str) -> None:
    """Say on stderr how many tools of a list without pages have one, and the command that shows them."""
    if count and not _gets_no_pages(profile):
        have, a_page, them = ("has", "a page", "it") if count == 1 else ("have", "pages", "them")
        remark(f"note: {counted(count, 'tool')} {have} {a_page} (MCP Apps), for hosts that show {them}: `{command}`")


def tell_of_hidden_pictures(sent: Mapping[str, tuple[Profile, Mapping[str, Any]]], *, verbose: bool = False) -> None:
    """Say on stderr at which hosts pictures are lost to the model, as it reads structured content in their place.

    `sent` has each host's profile with the result that it is sent; `verbose`: name all, however many there are.
    """
    hiding = {
        name: count
        for name, (profile, result) in sent.items()
        if profile.structured.host == "replaces-all" and (count := apps.hidden_pictures(lift(result)))
    }
    if hiding:
        lost = "the picture is" if set(hiding.values()) == {1} else "the pictures are"
        words = f"the model reads structured content in place of all other content, so {lost} lost to it"
        remark(f"note: {profile_names(list(hiding), verbose=verbose)}: {words}")


def _verb(names: Sequence[str], one: str, several: str) -> tuple[str, str]:
    return (one, "it gets") if len(names) == 1 else (several, "they get")


def _gets_no_pages(profile: Profile) -> bool:
    known = profile.apps
    return known.host == "declared" and known.declares is not True and False in (known.declares, known.shows)


def expected(caller: Caller, app: bool) -> Callable[[], Caller | None]:
    """Return the host to open upstreams for, since a server may have tools only for hosts that show pages.

    Without `--app`, it is not a particular host. It is of the handshake era, which nearly every server supports.
    """
    return lambda: replace(caller, revision=NEWEST_HANDSHAKE) if app else None


def page_words(page: apps.PageFacts) -> str:
    """Describe in one line what a page is and what it asks for."""
    asked = [f"{_WHAT_FOR.get(key, key)} {' '.join(domains)}" for key, domains in page.domains.items()]
    needs = f"asks for {', '.join(page.permissions)}" if page.permissions else None
    domains = asked or ["asks for no other domain"]
    return plain(join_facts(page.media_type or "no type", size_words(page.byte_size), *domains, needs), _LONGEST)


def callers(
    profiles: Mapping[str, Profile],
    tool: str,
    app: bool,
    names: Sequence[str] = (),
    has_pages: bool = True,
    listing: str = "mcp-gateway tools",
    *,
    verbose: bool = False,
) -> Mapping[str, Profile]:
    """Return the profiles whose hosts show pages and so can call the tool; name the others on stderr.

    `names` are those by which models call the tool, if they do; `has_pages`: whether there is a page that may call it;
    `listing` is the command that lists the names; `verbose`: name all that are left out, however many there are.

    Raises:
        UnknownTool: no host of these profiles shows pages.
    """
    showing = {name: profile for name, profile in profiles.items() if shows_pages(profile, app)}
    if not showing:
        remedy = "choose a profile whose host shows pages" if app else "add --app, as for a host that shows pages"
        words = f"there is no tool named {plain(tool, 100)!r}"
        if names:
            words += f"; here it is called {' or '.join(map(repr, names))}"
            as_page = f"only pages call it by its own name: to call it as one, {remedy}"
            remedy = as_page if has_pages else f"`{listing}` lists the names"
        else:
            words += ": only pages call it"
        raise UnknownTool(words, remedy=remedy)
    if left_out := [name for name in profiles if name not in showing]:
        why = "only pages call this tool, and these hosts show none"
        why += "" if app else " unless they declare it: add --app"
        remark(f"left out: {profile_names(left_out, verbose=verbose)} ({why})")
    return showing
