"""What a profile says, in a few words: for the tables of hosts in the documentation and the console. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.core.profiles.inheritance import value_at
from gateway.core.profiles.profile import AppRules, Evidence, Match, Profile

NAMELESS = ("default", "passthrough", "text-only")
"""Profiles that do not belong to a host."""

_KNOWN = ("measured", "source", "maintainer", "user_report")
"""Levels of evidence that say something about the host, best first."""
_SHOWN = {
    "line": "named",
    "file": "the path of a file, with `[files] dir`",
    "text": "text",
    "pages": "pages as images",
    "inline": "their content",
}
_READS = {
    "replaces-all": "data alone",
    "replaces-text": "data, not the text",
    "beside": "content and data",
    "dumped": "content and data",
    "ignored": "content",
    "if-empty": "content, else data",
    "unknown": "?",
}
_READ_WITHOUT_PAGE = {
    **{reads: reads for reads in _READS.values()},
    "content": "the content alone",
    "?": "what it reads of any result",
}
_SEEN = {"same-turn": "at once", "next-turn": "a turn late", "unknown": "?"}


OF_THE_HOST = frozenset(
    {
        *("wait.call", "wait.start", "wait.progress_resets"),
        *("apps.declares", "apps.shows", "apps.sessions"),
        *("apps.loads_domains", "apps.runs_eval", "apps.runs_data", "apps.grants"),
    }
)
"""Values that describe the host itself and are not limits."""


def own_evidence(profile: Profile, profiles: Mapping[str, Profile]) -> dict[str, Evidence]:
    """Return the evidence that is not inherited, by dotted path."""
    return {
        path: fact
        for path, fact in profile.evidence.items()
        if not any(_is_same(profiles[parent].evidence.get(path), fact) for parent in profile.lineage)
    }


def own_paths(profile: Profile, profiles: Mapping[str, Profile], paths: tuple[str, ...]) -> list[str]:
    """Return the paths whose values are not simply inherited: with other evidence, or with another value."""
    if not profile.lineage:
        return [path for path in paths if path in profile.evidence]
    parent = profiles[profile.lineage[0]]
    return [
        path
        for path in paths
        if value_at(profile, path) != value_at(parent, path)
        or not _is_same(profile.evidence.get(path), parent.evidence.get(path))
    ]


def _is_same(one: Evidence | None, other: Evidence | None) -> bool:
    return one is other or one == other  # inherited evidence is the same object, which is quick to see


def known_from(profile: Profile, profiles: Mapping[str, Profile]) -> str | None:
    """Return the best evidence about the host itself; None if nothing is known."""
    levels = {fact.level for fact in own_evidence(profile, profiles).values()}
    return next((level for level in _KNOWN if level in levels), None)


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
    if not profile.apps.shows:
        return "not shown"
    return "in some sessions" if profile.apps.sessions == "some" else "shown"


def drawn_elsewhere(profile: Profile, *, has_data: bool) -> str | None:
    """Say what a host does otherwise with the page of a tool than draw it with all its data; None if nothing.

    `has_data`: the result has structured content.
    """
    title, known = profile.title, profile.apps
    if known.host == "never" or known.shows is False:
        reads = _READ_WITHOUT_PAGE[read_with_page(profile)]
        return f"{title} shows no pages: its user does not get to see this one, and its model reads {reads}."
    if known.host == "declared" and known.declares is False:
        return f"{title} does not declare that it shows pages, so it is sent none: its model reads the content alone."
    if known.data == "text" and has_data:
        return (
            f"{title} shows this page, but loses structured content on the way to it: there the page gets the data as "
            "the first text, and one that reads only structured content stays empty."
        )
    if known.shows and known.sessions == "some":
        return f"{title} is reported to show pages in some sessions only: in others its user does not see this one."
    if known.shows is None:
        return f"It is not known whether {title} shows pages: there its user may not get to see this one."
    return None


def declares_pages(profile: Profile) -> str:
    """Whether the host declares that it shows pages (the extension of MCP Apps)."""
    return known_or_not(profile.apps.declares)


def known_or_not(known: bool | None) -> str:
    """Describe what is known of a host: yes, no, or a question mark."""
    return {None: "?", True: "yes", False: "no"}[known]


def granted(known: Sequence[str] | None) -> str:
    """Describe the permissions that pages get from a host if they ask for them."""
    return "?" if known is None else ", ".join(f"`{one}`" for one in known) or "none"


def read_with_page(profile: Profile) -> str:
    """What the model reads of the result of a tool with a page: its content, or its structured content ("data").

    A host that is sent no pages is sent no structured content for them either, but all of it as content.
    """
    known = profile.apps
    gets_pages = known.host == "always" or (known.host == "declared" and (known.declares or known.shows))
    return _READS[profile.structured.host if gets_pages or profile.structured.send == "always" else "ignored"]


def known_for_pages(profiles: Mapping[str, Profile]) -> list[Profile]:
    """Return the hosts of which it is known whether they show pages or declare the extension, by title."""
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    known = [
        profile
        for name, profile in profiles.items()
        if name not in variants and (pages(profile) != "?" or profile.apps.declares is not None)
    ]
    return sorted(known, key=lambda profile: profile.title.casefold())


def let_by(profiles: Mapping[str, Profile], lets: Callable[[AppRules], bool | None]) -> str:
    """Say which hosts are known to let pages do something: `by A, B; not by C; of other hosts it is not known`."""
    known = [(one.title, lets(one.apps)) for one in known_for_pages(profiles) if one.apps.shows]
    yes, no = (", ".join(title for title, is_let in known if is_let is answer) for answer in (True, False))
    told = (f"by {yes}" if yes else "", f"not by {no}" if no else "", "of other hosts it is not known")
    return "; ".join(part for part in told if part)


def seen(profile: Profile) -> str:
    """When the model sees an image."""
    return _SEEN[profile.shown] if profile.image.show == "native" else "-"


def words_at(profile: Profile, path: str) -> str:
    """Format the value at a dotted path."""
    value = value_at(profile, path)
    return "not known" if value is None and path in OF_THE_HOST else value_words(value)


def value_words(value: Any) -> str:
    """Format a value as in TOML."""
    match value:
        case None:
            return "no limit"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case int() | float():
            return f"{value:,}"
        case Mapping():
            pairs: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
            return "{ " + ", ".join(f'"{key}" = {value_words(item)}' for key, item in pairs.items()) + " }"
        case _:
            return "[" + ", ".join(value_words(item) for item in value) + "]"


def clients(profile: Profile, profiles: Mapping[str, Profile]) -> list[str]:
    """Return the clients for which the profile is chosen by default; for a variant, its host and models."""
    host = profiles.get(profile.lineage[0]) if profile.lineage else None
    models = host.variants.get(profile.name) if host else None
    of_host = [f"{host.name} {for_models(models)}"] if host and models else []
    return [*map(_client, profile.match), *of_host]


def for_models(models: tuple[str, ...]) -> str:
    """When a variant with these models replaces its host's profile."""
    return f"with the model {' or '.join(models)}" if models else "when it is chosen by name"


def _client(match: Match) -> str:
    agent = f"User-Agent /{match.user_agent}/" if match.user_agent else ""
    model = f"model {match.model}" if match.model else ""
    header = f"a header {match.header}" if match.header else ""
    name = " ".join(filter(None, (match.client_name, match.client_version)))
    return " and ".join(filter(None, (name, agent, header, model)))
