"""Results of tools with a page: content is shaped for the model, while the page gets its data unchanged."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gateway.core.fact_words import counted
from gateway.core.model.blocks import TextBlock, UnknownBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import compact_json, wire_chars
from gateway.core.model.json_values import as_object, is_list
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import text_tokens

TAKEN_BY_THE_MODEL = {
    "replaces-all": "this host's model reads it in place of the content, pictures included",
    "replaces-text": "this host's model reads it in place of the text",
    "beside": "this host's model reads it beside the content",
    "dumped": "this host's model reads it beside the content",
}
"""The part of a result that a model reads if structured content is sent for a page, by `structured.host`."""

IN_A_FILE = "too long for this host, which writes it to a file: its model reads where that is"
"""What becomes of structured content that is too long (`is_for_a_file`)."""

HEAVY_CHARS = 100_000
"""Characters of a page's data that are too many for a model: most contexts hold a few times as much."""

FOR_THE_PAGE_ALONE = (
    'put what only the page needs into _meta, or let the page fetch it with a tool of its own (visibility: ["app"])'
)
"""What the author of a server can do about data that is too large for a model."""

AS_IT_CAME = Note(kind="app", text="sent as it came, because only a page reads it")
"""The note on a result that no model reads."""

SHAPED_FOR_THE_PAGE_TOO = Note(
    kind="app",
    text="the page gets the shaped content too: anything that it needs whole belongs in structuredContent or _meta",
)
"""The note on a result whose content is incomplete, as host and page are sent the same result."""

_TOO_LONG = Note(
    kind="app",
    text="structured content is too long for a text (text.max_chars): this host's pages get none; have the tool return "
    "less of it, and let the page ask for the rest with a tool of its own, whose text it gets whole",
)
"""The note on data that does not reach the page, with the remedy."""

_MISSED_BY_PAGES = frozenset({"cut", "named", "dropped"})
"""The kinds of notes that mean that part of the content is missing."""

_LEAST_ROOM = 4
"""The divisor of the space for a result that is reserved for content, however large the page's data is."""


@dataclass(frozen=True)
class AppResult:
    """A result as it is sent, with notes of what that means for the model."""

    result: dict[str, Any]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Mirrored:
    """The source of the content beside a page's data: the envelope and profile, and the text to put first."""

    envelope: Envelope
    profile: Profile
    first: str | None = None


def mirrored(envelope: Envelope, profile: Profile, *, is_said: bool) -> Mirrored:
    """Prepare the content beside a page's data. `is_said`: the blocks say the same as the data.

    If the model would not read the data otherwise, it is included as compact JSON, without its media, which the model
    reads too. It comes first, as far as it fits, if this host's pages have no other access to it (`apps.data =
    "text"`). The page's part of the result reduces the space for the content.
    """
    data = compact_json(envelope.structured_content) if envelope.has_structured_content else ""
    profile = _beside(profile, len(data) + _page_only(envelope))
    if not envelope.has_structured_content:
        # Clients fail a result that has neither the data promised by the tool's output schema nor the error flag.
        unflagged = envelope.is_error and profile.error.media == "unflag"
        return Mirrored(envelope, _with(profile, "error", media="line") if unflagged else profile)
    rules, most = _with(profile, "structured", send="always"), profile.text.max_chars
    if profile.apps.data == "text" and (most is None or len(data) < most):
        rules = _beside(rules, len(data))
        return Mirrored(envelope, rules if most is None else _with(rules, "text", max_chars=most - len(data)), data)
    if is_said or profile.structured.send == "always":
        return Mirrored(envelope, rules)
    if profile.structured.host in TAKEN_BY_THE_MODEL and envelope.blocks:
        note = Note(kind="repeated", text="structured content, which this host's model reads as such")
        return Mirrored(envelope.with_note(note), rules)
    blocks = (*envelope.blocks, TextBlock(type="text", text=data))
    note = Note(kind="moved", text="structured content as text")
    return Mirrored(envelope.model_copy(update={"blocks": blocks}).with_note(note), rules)


class TextSize(NamedTuple):
    """The size of what is read as text: its characters, and an estimate of its tokens."""

    chars: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, text: str) -> "TextSize":
        """Return the size of a text."""
        return cls(len(text), text_tokens(text))

    def plus(self, other: "TextSize") -> "TextSize":
        """Return the size of both."""
        return TextSize(self.chars + other.chars, self.tokens + other.tokens)

    def words(self) -> str:
        """Word the size: `780,000 characters (about 195,000 tokens)`."""
        return f"{counted(self.chars, 'character')} (about {counted(self.tokens, 'token')})"


def is_for_a_file(profile: Profile, data: Any) -> bool:
    """Whether a host takes a page's data for the model's text, and writes it to a file because it is too long."""
    most = profile.text.max_chars
    if most is None or profile.text.beyond != "file" or profile.structured.host != "replaces-text":
        return False
    return len(compact_json(data)) > most


def for_app(
    shaped: Mapping[str, Any], raw: WireObject, profile: Profile, first: str | None, changes: Sequence[Note] = ()
) -> AppResult:
    """Return the shaped result with the upstream's own `structuredContent`, and with `first` before its content.

    `profile` is the host's own; `changes` are the notes of what was done to the content.
    """
    result, notes = dict(shaped), _over(raw, profile)
    if any(note.kind in _MISSED_BY_PAGES for note in changes):
        notes.append(SHAPED_FOR_THE_PAGE_TOO)
    if "structuredContent" not in raw:
        return AppResult(result, tuple(notes))
    result["structuredContent"] = raw["structuredContent"]
    words = "structured content is sent as it came, for the page"
    is_in_file = is_for_a_file(profile, raw["structuredContent"])
    instead = IN_A_FILE if is_in_file else TAKEN_BY_THE_MODEL.get(profile.structured.host)
    notes.append(Note(kind="app", text=f"{words}; {instead}" if instead else words))
    notes += [] if is_in_file else _heavy(raw["structuredContent"], profile)
    if first is not None and not _begins_with(result.get("content"), first):
        result["content"] = [{"type": "text", "text": first}, *result.get("content", ())]
        notes.append(Note(kind="app", text="structured content as the first text too: this host's pages get no other"))
    elif first is None and profile.apps.data == "text":
        notes.append(_TOO_LONG)
    return AppResult(result, tuple(notes))


def _heavy(data: Any, profile: Profile) -> list[Note]:
    """Return a warning if the page's data fills much of the context of this host's model, as it is never cut."""
    host = profile.structured.host
    if (host not in TAKEN_BY_THE_MODEL and host != "unknown") or wire_chars(data) <= HEAVY_CHARS:
        return []
    reads = "may go" if host == "unknown" else "goes"
    size = TextSize.of(compact_json(data)).words()
    words = f"warning: the page's data {reads} to this host's model whole, {size}: {FOR_THE_PAGE_ALONE}"
    return [Note(kind="app", text=words)]


def _begins_with(content: Any, data: str) -> bool:
    """Whether the first block is a text that already says the same."""
    if not is_list(content) or not content:
        return False
    first: Any = content[0]
    text = as_object(first).get("text")
    try:
        return isinstance(text, str) and bool(json.loads(text) == json.loads(data))
    except (ValueError, RecursionError):
        return False


def _beside(profile: Profile, taken: int) -> Profile:
    """Return the profile with the space that is left for content beside this many characters."""
    room = profile.limits.result_chars
    return profile if room is None else _with(profile, "limits", result_chars=max(room - taken, room // _LEAST_ROOM, 1))


def _page_only(envelope: Envelope) -> int:
    """Count the characters that no model reads: `_meta` and unknown members, of the result and of its blocks."""
    metas = [block.meta for block in envelope.blocks if not isinstance(block, UnknownBlock) and block.meta is not None]
    return sum(wire_chars(each) for each in (envelope.rest, *metas) if each)


def _over(raw: WireObject, profile: Profile) -> list[Note]:
    """Return a note if the page's part is larger than this host is known to accept: it cannot be cut."""
    room = profile.limits.result_chars
    size = 0 if room is None else wire_chars({key: value for key, value in raw.items() if key != "content"})
    if room is None or size <= room:
        return []
    words = f"the page's part has {size:,} characters, more than this host is known to take ({room:,})"
    return [Note(kind="app", text=words)]


def _with(profile: Profile, section: str, **values: Any) -> Profile:
    return profile.model_copy(update={section: getattr(profile, section).model_copy(update=values)})
