"""What each host is sent: in one table for docs/hosts/README.md, and host by host in docs/hosts/evidence.md."""

from collections.abc import Mapping

from evidence import facts, known_words_of
from host_runs import measured

from gateway.core.profiles.match_profile import namesake
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import (
    NAMELESS,
    characters,
    declares_pages,
    errors,
    granted,
    images,
    known_for_pages,
    known_from,
    known_or_not,
    own_evidence,
    pages,
    read_with_page,
    seen,
    shown,
    structured,
)
from gateway.hosts.config_files.hosts import HOSTS

_PAGES = ("apps.shows", "apps.sessions", "apps.declares", "apps.host", "apps.embedded")
"""The values that say what becomes of pages."""
_RIGHTS = ("apps.loads_domains", "apps.runs_eval", "apps.runs_data", "apps.grants")
"""The values that say what pages may do."""
_HEADING = (
    "| host | registered with | known from | images | sound | PDF | links | structured data | errors | text "
    "| names | seen | pages |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)
NAMED = """- *named*: instead of the content, the model gets a line with its type, size and handle, such as
  `[image 1: image/png, 960x600, 34 KB (this host does not show images to its model); handle img_pj7mjs2v2zrc]`. The
  content is kept. The model can read text and the pages of a PDF with a tool of the gateway, and pass any handle to a
  tool that takes content; the user can save it (`mcp-gateway content get`).
"""
_BEFORE = f"""# Hosts

*Written by docs/generate.py from the profiles and the known configuration files.* What the gateway sends to each host,
so that its model sees it. The first column links to the values of each host with their [evidence](evidence.md), the
second to instructions for registering the gateway there. In every other host, add the gateway by hand like any MCP
server; the command is `mcp-gateway serve`. A host that cannot run a command, such as ChatGPT or Claude on the web,
takes the address of `mcp-gateway serve --http`, and logs in: [access](../access.md). What each model sees of each kind
of result, by version: [matrix](matrix.md).

- *known from*: *measured with VERSION, on DATE*: the requests of the real host were captured ([those that the lab
  runs](lab.md)); *from source*: its code was read; *reported*: somebody said so. A host about which nothing is known is
  sent what unknown clients are sent.
{NAMED}- *images*: the types that are sent (others are converted), pixels on the longer edge, and how many in a result.
- *structured data*: `as it is`; or `as text`, because the host would lose it, or lose the rest beside it.
- *errors*: media in a result that reports an error is shown, shown with the error reported in the text, or named.
- *text*: the most characters in a result; *names*: in the name of a tool, including the host's prefix.
- *seen*: when the model sees an image.
- *pages*: whether the host shows its user the pages of [MCP Apps](../apps.md#which-hosts-show-pages): `shown`, `in some
  sessions`, `not shown`, or `in results`, which are those of mcp-ui alone; `?` where nothing is known. Where a host
  declares the extension, it is sent them.

`mcp-gateway profiles show NAME` shows every value of a profile. [Profiles](../profiles.md) explains the values, how a
profile is chosen, and how to write your own.
"""
_EVIDENCE = """# What is known about each host

*Written by docs/generate.py from the profiles.* Every value that a profile sets for itself, with its evidence:
**measured** (requests of the real host were captured), **source** (its code was read), **maintainer**, **user report**,
**judgement** (our choice, because nothing can be known) or **unverified**, with the version and the date of the check.
[Hosts](README.md) has the same hosts in one table.
"""


def hosts_page(profiles: Mapping[str, Profile]) -> str:
    """docs/hosts/README.md: all hosts in one table."""
    rows = [_row(profiles[name], profiles) for name in _names(profiles)]
    return "\n".join([_BEFORE, _HEADING, *rows, *_without_profile(profiles)]) + "\n"


def _without_profile(profiles: Mapping[str, Profile]) -> list[str]:
    hosts = [host for host in HOSTS.values() if (host.profile or host.name) not in profiles]
    pages = ", ".join(f"[{host.title}]({host.name}.md)" for host in sorted(hosts, key=lambda host: host.title))
    return (
        [f"\nThese can be registered, and have no profile of their own yet, so they get `default`: {pages}."]
        if hosts
        else []
    )


def evidence_page(profiles: Mapping[str, Profile]) -> str:
    """docs/hosts/evidence.md: host by host, every value with its evidence."""
    sections = [line for name in _names(profiles) for line in _section(profiles[name], profiles)]
    return "\n".join([_EVIDENCE, *sections]).rstrip() + "\n"


def popular(profiles: Mapping[str, Profile]) -> list[Profile]:
    """Return the profiles of hosts whose configuration files are known, and that of unknown clients."""
    names = dict.fromkeys(host.profile or name for name, host in HOSTS.items())
    return [*(profiles[name] for name in names if name in profiles), profiles["default"]]


def _names(profiles: Mapping[str, Profile]) -> list[str]:
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    return sorted((name for name in profiles if name not in variants), key=lambda name: _order(profiles[name]))


def known_words(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    """Return how the host is known, in words: its last run with version and day, else the best evidence."""
    return measured(profiles).get(profile.name, "")


def pages_table(profiles: Mapping[str, Profile]) -> str:
    """The hosts of which it is known whether they show pages or declare the extension, with the evidence."""
    headings = ("host", "`--profile`", "shows pages", "declares the extension", "the model reads", "how it is known")
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for profile in known_for_pages(profiles):
        evidence = own_evidence(profile, profiles)
        known = dict.fromkeys(known_words_of(evidence[path]) for path in _PAGES if path in evidence)
        reads = read_with_page(profile)
        cells = (
            profile.title,
            f"`{profile.name}`",
            pages(profile),
            declares_pages(profile),
            reads,
            "; ".join(known),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page_rights_table(profiles: Mapping[str, Profile]) -> str:
    """What each host that shows pages lets them do, as far as it is known, with the evidence."""
    headings = ("host", "loads from declared domains", "runs `eval`", "runs `data:`", "grants", "how it is known")
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for profile in known_for_pages(profiles):
        if profile.apps.shows:
            evidence = own_evidence(profile, profiles)
            known = dict.fromkeys(known_words_of(evidence[path]) for path in _RIGHTS if path in evidence)
            known_of = profile.apps
            let = map(known_or_not, (known_of.loads_domains, known_of.runs_eval, known_of.runs_data))
            lines.append(f"| {' | '.join((profile.title, *let, granted(known_of.grants), '; '.join(known)))} |")
    return "\n".join(lines) + "\n"


def _order(profile: Profile) -> tuple[bool, str]:
    return profile.name in NAMELESS, profile.title.casefold()


def _row(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    page = _page(profile)
    cells = (
        f"[{profile.title}](evidence.md#{profile.name})",
        f"[`install {page}`]({page}.md)" if page else "",
        known_words(profile, profiles),
        images(profile),
        shown(profile.audio.show),
        shown(profile.document.show),
        shown(profile.link.show),
        structured(profile),
        errors(profile),
        characters(profile.text.max_chars),
        str(profile.tools.name_max),
        seen(profile),
        "" if profile.name in NAMELESS else pages(profile),
    )
    return f"| {' | '.join(cells)} |"


def _section(profile: Profile, profiles: Mapping[str, Profile]) -> list[str]:
    lines = [f'<a id="{profile.name}"></a>\n', f"## {profile.title} (`{profile.name}`)\n", _about(profile)]
    if known_from(profile, profiles) is None and profile.name not in (*NAMELESS, "inspector"):
        lines.append("**Nothing is known of what it shows its model**: it is sent what every host is sent.\n")
    lines.append(f"{_chosen(profile)}{_namesake(profile, profiles)}{_based(profile)}\n")
    page = _page(profile)
    if page is not None:
        lines.append(f"To register the gateway there, see [{HOSTS[page].title}]({page}.md).\n")
    lines += facts(profile, profiles)
    for variant, models in profile.variants.items():
        lines += _variant(profiles[variant], models, profiles)
    return lines


def _page(profile: Profile) -> str | None:
    """Return the name of the host's registration page, if it has one."""
    return next((name for name, host in HOSTS.items() if (host.profile or name) == profile.name), None)


def _about(profile: Profile) -> str:
    return " ".join(profile.about.split()) + "\n"


def _chosen(profile: Profile) -> str:
    names = [
        f"`{match.client_name}`" + (f" and send a header `{match.header}`" if match.header else "")
        for match in profile.match
        if match.client_name
    ]
    agents = [f"`{match.user_agent}`" for match in profile.match if match.user_agent and not match.client_name]
    how = [f"clients that name themselves {', '.join(names)}"] if names else []
    how += [f"a User-Agent like {', '.join(agents)}"] if agents else []
    if not how:
        return "" if profile.name in NAMELESS else f"Chosen by name only: {_by_name(profile)}. "
    otherwise = f"; else by name: {_by_name(profile)}" if any(match.header for match in profile.match) else ""
    return f"Chosen for {' or '.join(how)}{otherwise}. "


def _by_name(profile: Profile) -> str:
    return f"`http://127.0.0.1:8484/mcp/{profile.name}` as the address, or `--profile {profile.name}`"


def _namesake(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    """Whose profile it is not, where clients of another host call themselves by its name."""
    other = namesake(profiles, profile.name)
    if other is None:
        return ""
    return f"**Not** for clients that call themselves `{profile.name}`: those are [{profiles[other].title}](#{other}). "


def _based(profile: Profile) -> str:
    return f"Based on [`{profile.lineage[0]}`](#{profile.lineage[0]})." if profile.lineage else "Based on nothing."


def _variant(profile: Profile, models: tuple[str, ...], profiles: Mapping[str, Profile]) -> list[str]:
    globs = ", ".join(f"`{glob}`" for glob in models)
    when = f"for the models {globs}, or by name" if models else "by name only"
    lines = [f"### {profile.title} (`{profile.name}`)\n"]
    if profile.about.strip():
        lines.append(_about(profile))
    return [*lines, f"A variant of the above profile, chosen {when}.\n", *facts(profile, profiles)]
