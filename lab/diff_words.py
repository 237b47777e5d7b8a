"""What changed between two runs of a host, in sentences for a release note."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.core.profiles.matrix import CaseRecord, Cell

Run = Sequence[CaseRecord]
"""The records of one host and one version."""
_OBJECTS = {
    "text": "texts",
    "chart": "images",
    "photo": "large JPEG images",
    "webp": "WebP images",
    "gif": "GIF images",
    "svg": "SVG images",
    "in_turn": "images between texts",
    "many": "many images in one result",
    "mislabelled": "images that are labelled with another type",
    "embedded": "images in embedded resources",
    "in_text": "images as data URIs in text",
    "pdf": "PDF",
    "sound": "sound",
    "resource": "texts in embedded resources",
    "link": "links",
    "structured": "structured content",
    "structured_chart": "images beside structured content",
    "error": "images beside errors",
    "long": "texts of 30,000 characters",
    "nothing": "empty results",
    "at_once": "images of two calls at once",
}
"""What a case has, as the object of a sentence; other cases are quoted."""
_VERBS = {
    "seen": "now shows {}",
    "named": "now names {} in a line",
    "lost": "lost {}",
    "refused": "now has {} refused by its model API",
    "failed": "now fails on {}",
}

_HAD = {"refused": ", which its model API had refused", "failed": ", at which it had failed"}


@dataclass(frozen=True)
class Change:
    """What became of one case, before and now, on one model API (None: not known), directly or with the gateway."""

    case: str
    returns: str
    model_api: str | None
    with_gateway: bool
    before: Cell
    now: Cell

    @property
    def words(self) -> str:
        """What the host does now, without its name."""
        what = _OBJECTS.get(self.case, f"“{self.returns}”")
        before, now = self.before, self.now
        if before.verdict == now.verdict or (now.of and now.of == before.of and 0 < (now.shown or 0) < now.of):
            return f"shows {now.shown} of {now.of} images of “{self.returns}”, instead of {before.shown}"
        if now.verdict == "lost" and now.of and now.shown == now.of:
            return f"lost a part of “{self.returns}”, not the images"
        if now.verdict == "lost" and before.verdict in _HAD:
            return f"drops {what}{_HAD[before.verdict]}"
        if now.verdict == "named" and before.verdict == "seen":
            return f"only names {what} in a line"
        return _VERBS[now.verdict].format(what)


def changes(old: Run, new: Run) -> Iterator[Change]:
    """Compare two runs of a host, by what both have."""
    known = {(record.model_api, record.case): record for record in old}
    for record in new:
        if before := known.get((record.model_api, record.case)):
            cells = ((False, before.directly, record.directly), (True, before.gateway, record.gateway))
            for with_gateway, was, now in cells:
                if was and now and (was.verdict, was.shown) != (now.verdict, now.shown):
                    yield Change(record.case, record.returns, record.model_api, with_gateway, was, now)


def sentences(old: Run, new: Run) -> list[str]:
    """Say what changed from one run of a host to another: one sentence for each change, for all model APIs alike."""
    last = new[0]
    name = f"{last.title} {last.version or 'of an unknown version'}"
    apis = {record.model_api for record in old} & {record.model_api for record in new}
    grouped: dict[tuple[bool, str], list[Change]] = {}
    for change in changes(old, new):
        grouped.setdefault((change.with_gateway, change.words), []).append(change)
    directly_first = sorted(grouped.items(), key=lambda item: item[0][0])
    lines = [f"{words}{_where(found, apis)}{_why(found)}" for (_, words), found in directly_first]
    return [f"{name} {words}" for words in (*lines, *_not_compared(old, new))]


def _where(found: Iterable[Change], apis: set[str | None]) -> str:
    changed = list(found)
    on = sorted({change.model_api for change in changed if change.model_api})
    through = ", with the gateway" if changed[0].with_gateway else ""
    return through if len(on) == len(apis) or not on else f" on {' and '.join(on)}{through}"


def _why(found: Iterable[Change]) -> str:
    reasons = {change.now.why for change in found}
    return f" ({reasons.pop()})" if len(reasons) == 1 and any(reasons) else ""


def _not_compared(old: Run, new: Run) -> Iterator[str]:
    for words, here, there in (("was now run", new, old), ("was no longer run", old, new)):
        apis = sorted({one.model_api for one in here if one.model_api} - {one.model_api for one in there})
        if apis:
            yield f"{words} on {' and '.join(apis)}"
    for words, here, there in (("first", new, old), ("no longer", old, new)):
        titles = {one.case: one.returns for one in here}
        if missing := [title for case, title in titles.items() if case not in {one.case for one in there}]:
            yield f"was {words} tried with {', '.join(missing)}"


def compared(old: Mapping[str, Run], new: Mapping[str, Run]) -> Iterator[tuple[str, list[str]]]:
    """Yield each host of either side in words, the two versions, with the sentences on it."""
    for host in sorted({*old, *new}):
        before, now = old.get(host), new.get(host)
        if before and now:
            versions = dict.fromkeys(run[0].version or "unknown version" for run in (before, now))
            yield f"{now[0].title} {' → '.join(versions)}", sentences(before, now)
        elif run := now or before:
            name = f"{run[0].title} {run[0].version or ''}".strip()
            yield name, [f"{name} {'was run for the first time' if now else 'was no longer run'}"]
