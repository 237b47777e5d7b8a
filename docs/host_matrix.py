"""What each host is sent: in one table for docs/hosts/README.md, and host by host in docs/hosts/evidence.md."""

from collections.abc import Mapping

from evidence import facts, known_words_of, own_evidence

from gateway.core.profiles.match_profile import namesake
from gateway.core.profiles.profile import Profile
from gateway.hosts.config_files.by_hand import HAND_EDITED
from gateway.hosts.config_files.hosts import HOSTS

_KNOWN = ("measured", "source", "maintainer", "user_report")
"""Levels of evidence that say something about the host, best first."""
_SHOWN = {
    "line": "named",
    "file": "the path of a file",
    "text": "text",
    "pages": "pages as images",
    "inline": "their content",
}
_SEEN = {"same-turn": "at once", "next-turn": "a turn late", "unknown": "?"}
_PAGES = ("apps.shows", "apps.declares", "apps.host", "apps.embedded")
"""The values that say what becomes of pages."""
_LAST = ("default", "passthrough", "text-only")
"""Profiles that do not belong to a host."""
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
takes the address of `mcp-gateway serve --http`, and logs in: [access](../access.md).

- *known from*: the best available evidence. **measured**: requests of the real host were captured; **source**: its
  code was read; **maintainer** or **user report**: somebody said so. A host about which nothing is known is sent what
  unknown clients are sent.
{NAMED}- *images*: the types that are sent (others are converted), pixels on the longer edge, and how many in a result.
- *structured data*: `as it is`; or `as text`, because the host would lose it, or lose the rest beside it.
- *errors*: media in a result that reports an error is shown, shown with the error reported in the text, or named.
- *text*: the most characters in a result; *names*: in the name of a tool, including the host's prefix.
- *seen*: when the model sees an image.
- *pages*: whether the host shows its user the pages of [MCP Apps](../apps.md#which-hosts-show-pages): `shown`, `not
  shown`, or `in results`, which are those of mcp-ui alone; `?` where nothing is known. Where a host declares the
  extension, it is sent them.

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
    return "\n".join([_BEFORE, _HEADING, *(_row(profiles[name], profiles) for name in _names(profiles))]) + "\n"


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


def known_from(profile: Profile, profiles: Mapping[str, Profile]) -> str | None:
    """Return the best evidence about the host itself; None if nothing is known."""
    levels = {fact.level for fact in own_evidence(profile, profile.lineage, profiles).values()}
    return next((level for level in _KNOWN if level in levels), None)


def known_words(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    """Return the best evidence about the host, in words."""
    return "" if profile.name in _LAST else (known_from(profile, profiles) or "nothing").replace("_", " ")


def images(profile: Profile) -> str:
    """Describe which images are sent, and how."""
    image = profile.image
    if image.show != "native":
        return _SHOWN[image.show]
    if not image.types:
        return "all, as they are"
    types = ", ".join(kind.removeprefix("image/").upper() for kind in image.types)
    edge = f"{image.max_edge:,} px" if image.max_edge else "any size"
    return f"{types}; {edge}; {image.max_count or 'any number'}"


def shown(show: str) -> str:
    """Describe how a kind of content is sent."""
    return _SHOWN.get(show, "as they are")


def errors(profile: Profile) -> str:
    """Describe how media beside an error is sent."""
    if profile.image.show == "line" or profile.error.media == "line":
        return "named"
    return "shown, error as text" if profile.error.media == "unflag" else "shown"


def structured(profile: Profile) -> str:
    """Describe how structured content is sent."""
    return "as it is" if profile.structured.send == "always" else "as text"


def characters(count: int | None) -> str:
    """A limit in characters."""
    return f"{count:,}" if count else "no limit"


def pages(profile: Profile) -> str:
    """Whether the host shows pages (MCP Apps)."""
    if profile.apps.shows is None:
        return "in results" if profile.apps.embedded == "always" else "?"
    return "shown" if profile.apps.shows else "not shown"


def pages_table(profiles: Mapping[str, Profile]) -> str:
    """The hosts of which it is known whether they show pages or declare the extension, with the evidence."""
    lines = ["| host | `--profile` | shows pages | declares the extension | how it is known |", "|---|---|---|---|---|"]
    for name in _names(profiles):
        profile = profiles[name]
        evidence = own_evidence(profile, profile.lineage, profiles)
        known = dict.fromkeys(known_words_of(evidence[path]) for path in _PAGES if path in evidence)
        if known and name not in _LAST:
            declares = "?" if profile.apps.declares is None else "yes" if profile.apps.declares else "no"
            cells = (profile.title, f"`{name}`", pages(profile), declares, "; ".join(known))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _order(profile: Profile) -> tuple[bool, str]:
    return profile.name in _LAST, profile.title.casefold()


def _row(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    page = _page(profile)
    cells = (
        f"[{profile.title}](evidence.md#{profile.name})",
        f"[`install {page}`]({page}.md)" if page else _by_hand(profile),
        known_words(profile, profiles),
        images(profile),
        shown(profile.audio.show),
        shown(profile.document.show),
        shown(profile.link.show),
        structured(profile),
        errors(profile),
        characters(profile.text.max_chars),
        str(profile.tools.name_max),
        _SEEN[profile.shown] if profile.image.show == "native" else "-",
        "" if profile.name in _LAST else pages(profile),
    )
    return f"| {' | '.join(cells)} |"


def _by_hand(profile: Profile) -> str:
    by_hand = profile.name in HAND_EDITED
    return f"[`install {profile.name}`](../registration.md#hosts-that-are-edited-by-hand) prints it" if by_hand else ""


def _section(profile: Profile, profiles: Mapping[str, Profile]) -> list[str]:
    lines = [f'<a id="{profile.name}"></a>\n', f"## {profile.title} (`{profile.name}`)\n", _about(profile)]
    if known_from(profile, profiles) is None and profile.name not in (*_LAST, "inspector"):
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
    names = [f"`{match.client_name}`" for match in profile.match if match.client_name]
    agents = [f"`{match.user_agent}`" for match in profile.match if match.user_agent and not match.client_name]
    how = [f"clients that name themselves {', '.join(names)}"] if names else []
    how += [f"a User-Agent like {', '.join(agents)}"] if agents else []
    if not how:
        return "" if profile.name in _LAST else f"Chosen by name only: `--profile {profile.name}`. "
    return f"Chosen for {' or '.join(how)}. "


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
