"""Calibration: deriving a host's profile from the codes that a model could read. Pure.

The gateway shows test blocks in parts, one part per call. Each block contains a random code that only a model which
really sees the block can read. What was read shows what the host shows; a code that was made up matches none, and
counts as not seen.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, Literal

from gateway.core.fact_words import plain
from gateway.core.profiles.client_names import normalise_client_name, separated
from gateway.core.profiles.profile import Fact, Match, Profile, ProfileSource

SHOW_TOOL = "gateway_calibrate_show"
REPORT_TOOL = "gateway_calibrate_report"
TOOLS = (SHOW_TOOL, REPORT_TOOL)

PLAIN = "plain"
"""The code in a line of text; a model that does not report it reports nothing reliable."""

KINDS: Mapping[str, str] = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
}
TEXTS: Mapping[str, int] = {
    f"a text of {length:,} characters": length for length in (52_000, 40_000, 20_000, 7_000, 2_000)
}
"""Texts from long to short: the part that a host keeps of a longer text does not show how long a text may be."""

SEVERAL = 8
LARGE_EDGE = 4_000
_USUAL_EDGE = 2_000

PARTS: Mapping[str, tuple[str, ...]] = {
    "pictures": (PLAIN, "png", "jpeg"),
    "other pictures": ("webp", "gif", "svg"),
    "several pictures": tuple(f"picture {number}" for number in range(1, SEVERAL + 1)),
    "a large picture": ("large", "fine"),
    "an embedded picture": ("embedded",),
    "a document": ("document",),
    "an error": ("error text", "error picture"),
    "structured content": ("text beside", "picture beside", "structured"),
    **{part: tuple(f"{place} of {part}" for place in ("quarter", "middle", "end")) for part in TEXTS},
    "sound": ("sound",),
}
"""The parts and their blocks, in the order in which they are asked for: parts that some hosts fail on come last."""


def is_answered(part: str, seen: Collection[str]) -> bool:
    """Whether a part need not be shown: it is a shorter text than one that was read whole."""
    length = TEXTS.get(part)
    return length is not None and any(
        length < longer and all(block in seen for block in PARTS[other]) for other, longer in TEXTS.items()
    )


_SAY_NOTHING = frozenset({"", "mcp", "fastmcp"})
"""Names that do not identify a host: every program on the Python SDK or FastMCP that sets none has one of them."""


When = Literal["at once", "a turn late", "not"]
"""When a block was read."""


@dataclass(frozen=True)
class Sight:
    """The blocks that were shown and asked about, those read at once, and those read after the user's next message.

    All are names of blocks, as in `PARTS`.
    """

    shown: Collection[str]
    now: Collection[str]
    later: Collection[str] = ()

    def saw(self, block: str) -> bool:
        """Whether the block's code was read at all."""
        return block in self.now or block in self.later

    @property
    def read(self) -> dict[str, When]:
        """Every block that was shown, and when it was read."""
        shown = [block for blocks in PARTS.values() for block in blocks if block in self.shown]
        return {
            block: "at once" if block in self.now else "a turn late" if block in self.later else "not"
            for block in shown
        }

    @property
    def is_trusted(self) -> bool:
        """Whether the code in plain text was read."""
        return self.saw(PLAIN)

    @property
    def sees_pictures(self) -> bool:
        """Whether any image was read."""
        return any(self.saw(kind) for kind in KINDS)


@dataclass(frozen=True)
class Calibrated:
    """The host that was calibrated, and the day. `claimed_model` is the model's name for itself, for remarks only."""

    client_name: str
    client_version: str | None
    model: str | None
    claimed_model: str | None
    day: date

    @property
    def host(self) -> str:
        """The host in words."""
        return plain(f"{self.client_name or 'a host without a name'} {self.client_version or ''}", 100).strip()

    @property
    def profile_name(self) -> str:
        """A name for its profile that is also a file name: `cursor-vscode-1.0.0`, with the model if that is known."""
        # Never a bare name, which may be that of a built-in profile.
        version = self.client_version or "calibrated"
        said = "-".join(filter(None, (self.client_name or "unnamed", version, self.model)))
        kept = "".join(each if each.isascii() and (each.isalnum() or each in "-.") else "-" for each in separated(said))
        words = [word for word in kept.split("-") if word.strip(".")]
        return "-".join(words)[:120].strip("-.") or "unnamed"

    @property
    def match(self) -> tuple[Match, ...]:
        """Match exactly this host, version and model; empty if the client's name does not identify a host."""
        name = normalise_client_name(self.client_name)
        if name in _SAY_NOTHING:
            return ()
        return (Match(client_name=_literally(name), client_version=self.client_version, model=self._model_glob),)

    @property
    def _model_glob(self) -> str | None:
        return None if self.model is None else _literally(self.model.strip().casefold())


def is_meant(host: str | None, client_name: str | None, profiles: Collection[str]) -> bool:
    """Whether a client is the host to be calibrated: any (None), one of a profile, or one with this name or glob."""
    if host is None or host.casefold() in map(str.casefold, profiles):
        return True
    return fnmatchcase(normalise_client_name(client_name or ""), normalise_client_name(host))


def calibrated_profile(who: Calibrated, sight: Sight, base: Profile) -> ProfileSource:
    """Derive the profile that follows from what was seen. It extends `base`, the profile previously in force.

    What was not tried, or cannot be concluded, stays as in `base`.
    """
    model = who.model or who.claimed_model
    on = f", model {plain(model, 100)}" if model else ""
    return ProfileSource(
        title=f"{who.host} (calibrated)",
        about=f"Measured by `mcp-gateway calibrate` on {who.day.isoformat()} with {who.host}{on}.",
        extends=base.name,
        match=who.match,
        fact=tuple(
            Fact(
                level="measured",
                source=f"mcp-gateway calibrate, codes read by the model{on}: {words}",
                host_version=who.client_version or "not reported",
                checked=who.day,
                sets=dict(sets),
            )
            for words, sets in conclusions(sight, base)
        ),
    )


Conclusion = tuple[str, Mapping[str, Any]]
"""An observation in words, and the values that follow from it."""


def conclusions(sight: Sight, base: Profile) -> Iterator[Conclusion]:
    """Yield the conclusions one by one; none if the report is not reliable."""
    if not sight.is_trusted:
        return
    for part, rule in _RULES.items():
        if all(block in sight.shown for block in PARTS[part]):
            yield from rule(sight, base)
    yield from _texts(sight, base)


def _pictures(sight: Sight, base: Profile) -> Iterator[Conclusion]:
    tried = [kind for kind in KINDS if kind in sight.shown]
    seen = [kind for kind in tried if sight.saw(kind)]
    if not seen:
        words = f"none of {', '.join(tried)}, neither at once nor after the next message"
        yield words, {"image.show": _unseen(base.image.show), "error.media": "line"}
        return
    at_once = any(kind in sight.now for kind in seen)
    when = "at once" if at_once else "only after the next message"
    values = {"image.show": "native", "image.types": [KINDS[kind] for kind in seen]}
    yield (
        f"{', '.join(seen)} of {', '.join(tried)}, {when}",
        {**values, "shown": "same-turn" if at_once else "next-turn"},
    )


def _several(sight: Sight, base: Profile) -> Iterator[Conclusion]:
    if not sight.sees_pictures:
        return
    count = sum(sight.saw(block) for block in PARTS["several pictures"])
    most = base.image.max_count
    if count < SEVERAL or (most is not None and most < SEVERAL):
        yield f"{count} of {SEVERAL} pictures in one result", {"image.max_count": max(1, count)}


def _large(sight: Sight, base: Profile) -> Iterator[Conclusion]:
    if not sight.sees_pictures:
        return
    edge = base.image.max_edge
    if sight.saw("fine"):
        if edge is not None and edge < LARGE_EDGE:
            yield f"the finest digits of a picture of {LARGE_EDGE:,} pixels", {"image.max_edge": LARGE_EDGE}
    elif not sight.saw("large") and (edge is None or edge > _USUAL_EDGE):
        yield f"nothing of a picture of {LARGE_EDGE:,} pixels", {"image.max_edge": _USUAL_EDGE}


def _embedded(sight: Sight, _base: Profile) -> Iterator[Conclusion]:
    if sight.sees_pictures:
        seen = sight.saw("embedded")
        yield f"{'a' if seen else 'no'} picture in an embedded resource", {"blob.image_as_image": not seen}


def _document(sight: Sight, base: Profile) -> Iterator[Conclusion]:
    if sight.saw("document"):
        yield "a page of an embedded PDF", {"document.show": "native"}
    else:
        show = base.document.show
        yield "no page of an embedded PDF", {"document.show": "text" if show == "native" else show}


def _error(sight: Sight, _base: Profile) -> Iterator[Conclusion]:
    if sight.sees_pictures:
        seen = sight.saw("error picture")
        yield f"{'a' if seen else 'no'} picture beside an error", {"error.media": "keep" if seen else "unflag"}


def _structured(sight: Sight, _base: Profile) -> Iterator[Conclusion]:
    text, picture, structured = (sight.saw(block) for block in PARTS["structured content"])
    if not structured:
        if text:
            yield (
                "text, and no structured content beside it",
                {"structured.host": "ignored", "structured.send": "never"},
            )
        return
    if text and (picture or not sight.sees_pictures):
        yield "structured content, and what stood beside it", {"structured.host": "beside"}
        return
    host = "replaces-text" if picture or not sight.sees_pictures else "replaces-all"
    lost = " and ".join(word for word, seen in (("text", text), ("picture", picture)) if not seen)
    yield f"structured content, and no {lost} beside it", {"structured.host": host, "structured.send": "never"}


def _texts(sight: Sight, base: Profile) -> Iterator[Conclusion]:
    tried = [part for part in TEXTS if PARTS[part][0] in sight.shown]
    # Text is shown at once or not at all: text that is read later was read from a file that the host made of it.
    whole = next((part for part in tried if all(block in sight.now for block in PARTS[part])), None)
    if whole is None:
        return
    length, most = TEXTS[whole], base.text.max_chars
    if whole != tried[0]:
        missed = tried[tried.index(whole) - 1]
        if most is None or not length <= most < TEXTS[missed]:
            yield f"{whole} whole, and not {missed}", {"text.max_chars": length}
    elif most is not None and most < length:
        yield f"{whole} whole, and longer ones were not tried", {"text.max_chars": length}


def _sound(sight: Sight, base: Profile) -> Iterator[Conclusion]:
    if sight.saw("sound"):
        yield "tones in a WAV", {"audio.show": "native", "audio.types": ["audio/wav"]}
    else:
        yield "no tones in a WAV", {"audio.show": _unseen(base.audio.show)}


def _unseen(show: str) -> str:
    """Return how hidden content is shown instead: as a file, if that is what the host gets."""
    return "file" if show == "file" else "line"


def _literally(text: str) -> str:
    """Return a glob that matches only this text."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)


_RULES: Mapping[str, Callable[[Sight, Profile], Iterator[Conclusion]]] = {
    "pictures": _pictures,
    "several pictures": _several,
    "a large picture": _large,
    "an embedded picture": _embedded,
    "a document": _document,
    "an error": _error,
    "structured content": _structured,
    "sound": _sound,
}
