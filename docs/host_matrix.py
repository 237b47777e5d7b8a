"""docs/hosts.md: what each host is sent, in one table, and then host by host with the evidence."""

from collections.abc import Mapping

from evidence import facts, own_evidence

from gateway.core.model.profile import Profile
from gateway.registration.hosts import HOSTS

_KNOWN = ("measured", "source", "maintainer", "user_report")
"""Levels of evidence that say something of the host, the best first."""
_SHOWN = {
    "line": "a line",
    "file": "the path of a file",
    "text": "text",
    "pages": "pages as images",
    "inline": "what they lead to",
}
_SEEN = {"same-turn": "at once", "next-turn": "a turn late", "unknown": "?"}
_LAST = ("default", "passthrough")
_HEADING = (
    "| host | known from | images | sound | documents | links | structured data | errors | text | names | seen |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)
_BEFORE = """# Hosts

*Written by docs/generate.py from the profiles.* What the gateway sends each host, so that its model sees it. Each value
has its evidence below: **measured** (requests of the real host, captured), **source** (its code was read),
**maintainer**, **user report**, **judgement** (a choice of ours where nothing can be known) or **unverified**; with the
version and the day it was checked. What is not known is what every host is sent, the `default`.

- *images*: the types that are sent (others are converted), pixels of the longer edge, how many in one result.
- *documents*: PDF.
- *structured data*: `as it is`, or `as text`, because the host loses it, or loses the rest beside it.
- *errors*: what becomes of media beside an error: shown, shown with the error said in text, or named in a line.
- *text*: characters of a result; *names*: characters of a tool's name, the host's own prefix included.
- *seen*: when the model sees an image.

`mcp-gateway profiles show NAME` shows all values of a profile; [profiles](profiles.md) says what they mean, how one is
chosen, and how to write your own; [docs/hosts](hosts/README.md) how the gateway is registered.
"""


def hosts_page(profiles: Mapping[str, Profile]) -> str:
    """The whole page."""
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    hosts = sorted((name for name in profiles if name not in variants), key=lambda name: _order(profiles[name]))
    rows = [_row(profiles[name], profiles) for name in hosts]
    sections = [line for name in hosts for line in _section(profiles[name], profiles)]
    return "\n".join([_BEFORE, _HEADING, *rows, "", *sections]).rstrip() + "\n"


def measured(profiles: Mapping[str, Profile]) -> list[Profile]:
    """The hosts of which something was measured, and what unknown ones are sent."""
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    return [
        profile
        for profile in sorted(profiles.values(), key=_order)
        if profile.name not in (*variants, "passthrough") and known_from(profile, profiles) == "measured"
    ]


def known_from(profile: Profile, profiles: Mapping[str, Profile]) -> str | None:
    """The best evidence that there is of the host itself; None when nothing is known of it."""
    levels = {fact.level for fact in own_evidence(profile, profile.lineage, profiles).values()}
    return next((level for level in _KNOWN if level in levels), None)


def images(profile: Profile) -> str:
    """Which images are sent, and how."""
    image = profile.image
    if image.show != "native":
        return _SHOWN[image.show]
    if not image.types:
        return "all, as they are"
    types = ", ".join(kind.removeprefix("image/").upper() for kind in image.types)
    edge = f"{image.max_edge:,} px" if image.max_edge else "any size"
    return f"{types}; {edge}; {image.max_count or 'any number'}"


def shown(show: str) -> str:
    """What becomes of a kind of content."""
    return _SHOWN.get(show, "as they are")


def errors(profile: Profile) -> str:
    """What becomes of media beside an error."""
    if profile.image.show == "line" or profile.error.media == "line":
        return "a line"
    return "shown, error as text" if profile.error.media == "unflag" else "shown"


def structured(profile: Profile) -> str:
    """What becomes of structured content."""
    return "as it is" if profile.structured.send == "always" else "as text"


def characters(count: int | None) -> str:
    """A limit in characters."""
    return f"{count:,}" if count else "no limit"


def _order(profile: Profile) -> tuple[bool, str]:
    return profile.name in _LAST, profile.title.casefold()


def _row(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    known = "" if profile.name in _LAST else (known_from(profile, profiles) or "nothing").replace("_", " ")
    cells = (
        f"[{profile.title}](#{profile.name})",
        known,
        images(profile),
        shown(profile.audio.show),
        shown(profile.document.show),
        shown(profile.link.show),
        structured(profile),
        errors(profile),
        characters(profile.text.max_chars),
        str(profile.tools.name_max),
        _SEEN[profile.shown] if profile.image.show == "native" else "-",
    )
    return f"| {' | '.join(cells)} |"


def _section(profile: Profile, profiles: Mapping[str, Profile]) -> list[str]:
    lines = [f'<a id="{profile.name}"></a>\n', f"## {profile.title} (`{profile.name}`)\n", _about(profile)]
    if known_from(profile, profiles) is None and profile.name not in (*_LAST, "inspector"):
        lines.append("**Nothing is known of what it shows its model**: it is sent what every host is sent.\n")
    lines.append(f"{_chosen(profile)}{_based(profile)}\n")
    page = next((name for name, host in HOSTS.items() if (host.profile or name) == profile.name), None)
    if page is not None:
        lines.append(f"How the gateway is registered there: [{HOSTS[page].title}](hosts/{page}.md).\n")
    lines += facts(profile, profiles)
    for variant, models in profile.variants.items():
        lines += _variant(profiles[variant], models, profiles)
    return lines


def _about(profile: Profile) -> str:
    return " ".join(profile.about.split()) + "\n"


def _chosen(profile: Profile) -> str:
    names = [f"`{match.client_name}`" for match in profile.match if match.client_name]
    agents = [f"`{match.user_agent}`" for match in profile.match if match.user_agent and not match.client_name]
    how = [f"clients that call themselves {', '.join(names)}"] if names else []
    how += [f"a User-Agent like {', '.join(agents)}"] if agents else []
    if not how:
        return "" if profile.name in _LAST else f"Chosen by name only: `--profile {profile.name}`. "
    return f"Chosen for {' or '.join(how)}. "


def _based(profile: Profile) -> str:
    return f"Based on [`{profile.lineage[0]}`](#{profile.lineage[0]})." if profile.lineage else "Based on nothing."


def _variant(profile: Profile, models: tuple[str, ...], profiles: Mapping[str, Profile]) -> list[str]:
    globs = ", ".join(f"`{glob}`" for glob in models)
    when = f"for the models {globs}, or by name" if models else "by name only"
    lines = [f"### {profile.title} (`{profile.name}`)\n"]
    if profile.about.strip():
        lines.append(_about(profile))
    return [*lines, f"A variant of the above, chosen {when}.\n", *facts(profile, profiles)]
