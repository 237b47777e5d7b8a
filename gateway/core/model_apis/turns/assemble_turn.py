"""Assembling a turn: each block of each result becomes text, media in its place, or a line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.core import fact_words, wording
from gateway.core.model import media_types
from gateway.core.model.blocks import Block, Found, ImageBlock, LinkBlock, ResourceBlock, TextBlock
from gateway.core.model.contents import decoded_text, is_textual
from gateway.core.model.effects import Effect, Keep, Kept, Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import as_object
from gateway.core.model.notes import Note
from gateway.core.model.turn import DETAIL_KEY, DETAILS, Answer, Call, FollowUp, Media, MediaKind, Part, Turn, Words
from gateway.core.model_apis.turns.model_rules import rules_for, shows_images
from gateway.core.model_apis.turns.raw_content import raw_content
from gateway.core.model_apis.turns.references import is_file, reference
from gateway.core.model_apis.turns.share_tokens import share_tokens, turn_tokens
from gateway.core.profiles.model_profile import ImagePlace, ModelImages, ModelMedia, ModelProfile
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import AsImage, AsIs, AsText, BlockDecision, TokenBudget, ToTextLine, decide
from gateway.core.results.decisions.links import link_words
from gateway.core.tokens import Length, Lengths


@dataclass(frozen=True)
class Choices:
    """The caller's choices. `links_native`: addresses in links are passed on to APIs that fetch them themselves.

    `drawings_as_text`: a drawing (SVG) that cannot be sent as an image becomes its source; `documents_converted`: a PDF
    that cannot be sent becomes its text, or images of its pages; `fits`: whether images can be fitted at all.
    `describes`: the kinds of media (`image`, `audio`) that can be described in words if they cannot be sent.
    `tokens`: the budget of the whole turn, if it has one.
    """

    links_native: bool = False
    drawings_as_text: bool = False
    documents_converted: bool = False
    fits: bool = True
    describes: frozenset[str] = frozenset()
    tokens: TokenBudget | None = None


@dataclass(frozen=True)
class Assembled:
    """The turn, the effects that it still needs, and the notes of what was changed.

    `lengths` are those of its media, if they had to be found out.
    """

    turn: Turn
    wanted: Mapping[str, Effect]
    notes: tuple[Note, ...]
    lengths: Lengths = field(default_factory=dict[str, Length])


def assemble(
    calls: Sequence[Call], profile: ModelProfile, outcomes: Mapping[str, Outcome], choices: Choices | None = None
) -> Assembled:
    """Assemble the turn for a model profile, given the outcomes so far. Pure; never raises.

    Effects and outcomes are keyed `<index of the call>/<key within its result>`.
    """
    choices = choices or Choices()
    budget = choices.tokens
    if budget is None:
        return _assembled(calls, profile, outcomes, choices, None)
    budgets, room = [replace(budget, most=_UNBOUNDED)] * len(calls), budget.most
    done = _assembled(calls, profile, outcomes, choices, budgets)
    for division in range(_DIVISIONS):
        if done.wanted or (over := turn_tokens(done.turn, budget, done.lengths) - budget.most) <= 0:
            break
        room = max(1, room - over) if division else room
        budgets = share_tokens(calls, replace(budget, most=room), done.lengths)
        done = _assembled(calls, profile, outcomes, choices, budgets)
    return done


_UNBOUNDED = 1 << 62
"""The tokens of a result whose media are measured, but not cut."""
_DIVISIONS = 8
"""How often the budget of a turn is divided again because labels and captions take more of it than expected."""


def _assembled(
    calls: Sequence[Call],
    profile: ModelProfile,
    outcomes: Mapping[str, Outcome],
    choices: Choices,
    budgets: Sequence[TokenBudget] | None,
) -> Assembled:
    assembler = _Assembler(profile, choices)
    by_call = _by_call(outcomes)
    for index, call in enumerate(calls):
        assembler.add(index, call, by_call.get(str(index), {}), None if budgets is None else budgets[index])
    reply = wording.IMAGES_FOLLOW if profile.image.place == "after_reply" else None
    turn = Turn(tuple(assembler.answers), tuple(assembler.follow_ups), reply)
    return Assembled(turn, assembler.wanted, tuple(assembler.notes), assembler.lengths)


def _by_call(outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, Outcome]]:
    """Return the outcomes of each call by the key within its result; linear in their number."""
    found: dict[str, dict[str, Outcome]] = {}
    for key, outcome in outcomes.items():
        index, _, within = key.partition("/")
        found.setdefault(index, {})[within] = outcome
    return found


@dataclass
class _Assembler:
    """One run over a turn. Labels and the number of images continue from call to call."""

    profile: ModelProfile
    choices: Choices
    answers: list[Answer] = field(default_factory=list[Answer])
    follow_ups: list[FollowUp] = field(default_factory=list[FollowUp])
    wanted: dict[str, Effect] = field(default_factory=dict[str, Effect])
    notes: list[Note] = field(default_factory=list[Note])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    lengths: dict[str, Length] = field(default_factory=dict[str, Length])
    index: int = 0
    """The index of the current call."""
    caption: wording.Captioned | None = None
    """The caption that the text before the current media had, including its handle."""
    rules: tuple[int, Profile] | None = None
    """The last rules, and the number of images shown before them."""
    kept: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    """Outcomes of storing the part of the call's content that was too much for the API."""

    def add(self, index: int, call: Call, outcomes: Mapping[str, Outcome], budget: TokenBudget | None) -> None:
        errors = self.profile.error
        raw, note = raw_content(call.envelope, self.profile)
        self.notes += [note] if note else []
        if raw is not None:
            stand_in = Words(wording.marker("document"))
            self.answers.append(Answer(call, (stand_in,), call.envelope.is_error and errors.flag, raw))
            return
        drawings = self.choices.drawings_as_text and not (self.choices.fits and shows_images(self.profile))
        envelope = _with_texts(call.envelope, drawings=drawings)
        self.kept = {key: one for key, one in outcomes.items() if key.startswith("over:")}
        self.index = index
        shown = self.numbers.get("image shown", 0)
        rules = self._rules(shown)
        decisions = decide(envelope, rules, outcomes, self.choices.describes, budget)
        self.wanted |= {f"{index}/{key}": effect for key, effect in decisions.wanted.items()}
        self.notes += [*envelope.notes, *decisions.notes]
        self.lengths |= decisions.lengths
        flagged = envelope.is_error and errors.flag
        parts: list[Part] = []
        for decision, caption in _with_captions(decisions.decided_blocks):
            self.caption = caption
            self._place(parts, call, decision, text_only=flagged and errors.text_only)
        if envelope.is_error and not flagged:
            _prefix(parts)
        if not parts:
            parts.append(Words(wording.NO_TEXT_ERROR if envelope.is_error else wording.NOTHING))
        elif flagged and not any(isinstance(part, Words) for part in parts):
            parts.insert(0, Words(wording.NO_TEXT_ERROR))
        self.answers.append(Answer(call, tuple(parts), flagged))

    def _rules(self, shown: int) -> Profile:
        """Return the rules after this many images. The last are kept, because most calls show none."""
        if self.rules is None or self.rules[0] != shown:
            made = rules_for(self.profile, shown, converts_documents=self.choices.documents_converted)
            self.rules = (shown, made)
        return self.rules[1]

    def _place(self, parts: list[Part], call: Call, decision: BlockDecision, *, text_only: bool) -> None:
        match decision:
            case AsText():
                if decision.text.strip():
                    parts.append(Words(decision.text))
            case ToTextLine():
                parts.append(Words(self._line(decision)))
            case AsImage():
                if decision.uri:
                    parts.append(Words(wording.link_line("", "", decision.uri, None, readable=False)))
                label, detail = self._label("image"), _detail(decision)
                media = Media("image", decision.media_type, decision.data, label, _title(decision.uri), detail=detail)
                self._count_image()
                late = decision.media_type in self.profile.image.follow_up_types
                place: ImagePlace = "follow_up" if late or text_only else self.profile.image.place
                self._media(parts, call, media, place, _changed(decision))
            case AsIs(block=LinkBlock() as link):
                self._link(parts, call, link, text_only=text_only)
            case AsIs(shown=Found() as found):
                self._bytes(parts, call, found, decision, text_only=text_only)
            case AsIs():
                pass

    def _bytes(self, parts: list[Part], call: Call, found: Found, decision: AsIs, *, text_only: bool) -> None:
        family = media_types.family(found.media_type)
        kind: MediaKind = family if family in ("audio", "video") else "document"  # pyright: ignore[reportAssignmentType]
        rules = self._taken(kind)
        title = _title(decision.source.name if decision.source else None)
        label = self._label(kind)
        if self._is_too_many(kind):
            why = f"only {rules.max_count} of a kind are taken at once"
            known = fact_words.join_facts(fact_words.plain(title) if title else None, found.media_type)
            parts.append(Words(wording.media_line(label, known, why, self._keep(label, found, title), None)))
            self.notes.append(Note(kind="named", text=f"{label} of {call.name}: {why}"))
            return
        media = Media(kind, found.media_type or "application/octet-stream", found.data, label, title)
        self._media(parts, call, media, "follow_up" if text_only else rules.place, decision.caption or None)

    def _keep(self, label: str, found: Found, title: str | None) -> str | None:
        """Return the handle of content that is too much for the API; None until it is stored, or if storing failed."""
        key = f"over:{label}"
        outcome = self.kept.get(key)
        if outcome is None:
            media_type = found.media_type or "application/octet-stream"
            self.wanted[f"{self.index}/{key}"] = Keep(key, found.data, False, media_type, title)
        return outcome.handle if isinstance(outcome, Kept) else None

    def _link(self, parts: list[Part], call: Call, block: LinkBlock, *, text_only: bool) -> None:
        parts.append(Words(link_words(block, readable=False)))
        found = reference(block, self.profile, native=self.choices.links_native)
        kind = found[0].kind if found else None
        if found is None or kind is None or self._is_too_many(kind, ahead=1):
            why = ", a provider's file that this API cannot read" if is_file(block) else ""
            self.notes.append(Note(kind="named", text=f"a link of {call.name} as a line{why}"))
            return
        media, rules = replace(found[0], label=self._label(kind)), found[1]
        if kind == "image":
            self._count_image()
        what = "a provider's file" if media.file_id else "an address that the API fetches"
        self.notes.append(Note(kind="converted", text=f"a link of {call.name} as {media.label}, {what}"))
        self._media(parts, call, media, "follow_up" if text_only else rules.place, None)

    def _taken(self, kind: MediaKind) -> ModelImages | ModelMedia:
        profile = self.profile
        return {"image": profile.image, "audio": profile.audio, "video": profile.video, "document": profile.document}[
            kind
        ]

    def _is_too_many(self, kind: MediaKind, ahead: int = 0) -> bool:
        counted = self.numbers.get("image shown" if kind == "image" else kind, 0)
        limit = self._taken(kind).max_count
        return limit is not None and counted + ahead > limit

    def _count_image(self) -> None:
        self.numbers["image shown"] = self.numbers.get("image shown", 0) + 1

    def _media(self, parts: list[Part], call: Call, media: Media, place: ImagePlace, changed: str | None) -> None:
        known, handle = (self.caption.known, self.caption.handle) if self.caption else ("", None)
        if place == "in_tool":
            if changed or handle:
                parts.append(Words(wording.caption(media.label, known, changed, None, handle)))
            parts.append(media)
            return
        about = fact_words.join_facts(known, changed, "after the tool results")
        parts.append(Words(wording.marker(media.label, about, handle)))
        self.follow_ups.append(FollowUp(wording.whose(media.label, call.name, call.id), media))
        self.notes.append(Note(kind="moved", text=f"{media.label} of {call.name} into the message after the results"))

    def _label(self, kind: str) -> str:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return wording.label(kind, self.numbers[kind])

    def _line(self, decision: ToTextLine) -> str:
        if decision.kind is None:
            return decision.text
        label = self._label(decision.kind)
        if decision.said:
            return wording.description_line(label, decision.by, decision.known, decision.handle, decision.said)
        handle = decision.handle or (self.caption.handle if self.caption else None)
        return wording.media_line(label, decision.known, decision.text or None, handle, decision.tool)


def _with_captions(decided_blocks: Sequence[BlockDecision]) -> Iterator[tuple[BlockDecision, wording.Captioned | None]]:
    """Yield each decision with the caption that preceded it, which names its handle and is removed from the text.

    The gateway numbers the media of each result; here it is numbered across the turn, and an image must not have two
    numbers.
    """
    held: tuple[AsText, wording.Captioned] | None = None
    for decision in decided_blocks:
        caption = held[1] if held is not None and held[1].kind == _kind_of(decision) else None
        if held is not None and caption is None:
            yield held[0], None
        own = wording.captioned(decision.text) if isinstance(decision, AsText) else None
        held = (decision, own) if isinstance(decision, AsText) and own is not None else None
        if held is None:
            yield decision, caption
    if held is not None:
        yield held[0], None


def _kind_of(decision: BlockDecision) -> str | None:
    match decision:
        case AsImage():
            return "image"
        case ToTextLine() | AsIs():
            return decision.kind
        case AsText():
            return None


def _prefix(parts: list[Part]) -> None:
    for index, part in enumerate(parts):
        if isinstance(part, Words):
            parts[index] = Words(wording.failed_text(part.text))
            return
    parts.insert(0, Words(wording.ERROR_PREFIX + wording.NO_TEXT_ERROR))


def _changed(image: AsImage) -> str | None:
    scaled = wording.scaled(image.original, image.pixels) if image.original and image.pixels else None
    first = wording.kept_whole(wording.first_frame(image.frames), image.handle) if image.frames > 1 else None
    return fact_words.join_facts(image.about, scaled, first) or None


def _detail(image: AsImage) -> str | None:
    meta = image.beside.get("_meta")
    asked: Any = as_object(meta).get(DETAIL_KEY)
    return asked if asked in DETAILS else None


def _title(uri: str | None) -> str | None:
    return fact_words.plain(uri.rstrip("/").rsplit("/", 1)[-1], 100) or None if uri else None


def _with_texts(envelope: Envelope, *, drawings: bool) -> Envelope:
    """Return the envelope with text files as text; with `drawings`, SVG as its source too."""
    blocks = [_text_of(block, drawings) for block in envelope.blocks]
    notes = [
        Note(kind="converted", text=f"{_type_of(old)} read as text", block=index)
        for index, (old, new) in enumerate(zip(envelope.blocks, blocks, strict=True))
        if new is not old
    ]
    return envelope.model_copy(update={"blocks": tuple(blocks)}).with_note(*notes) if notes else envelope


def _text_of(block: Block, drawings: bool) -> Block:
    found = block.found if isinstance(block, ImageBlock | ResourceBlock) else None
    if found is None or not is_textual(found.media_type, drawings=drawings):
        return block
    text = decoded_text(found)
    if text is None:
        return block
    if isinstance(block, ResourceBlock):
        resource = block.resource.model_copy(update={"text": text, "blob": None})
        return block.model_copy(update={"resource": resource, "found": None})
    return TextBlock(type="text", text=text)


def _type_of(block: Block) -> str:
    found = block.found if isinstance(block, ImageBlock | ResourceBlock) else None
    return found.media_type or "a file" if found else "a file"
