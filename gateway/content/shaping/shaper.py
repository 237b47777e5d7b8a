"""Lift, settle and lower a tool's raw result into the form that a profile's host shows best."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from anyio import to_thread

from gateway.config.builtin_profiles import counting_formulas
from gateway.content.links.content_linker import ContentLinker
from gateway.content.shaping.effects import (
    ContentSink,
    DescriberFor,
    EffectRunner,
    FileWriter,
    Reach,
    ToolDescriber,
    perform,
)
from gateway.content.shaping.measure_media import measure_media
from gateway.content.shaping.outputs import has_outputs, with_outputs
from gateway.content.shaping.settle import Outcomes, settle
from gateway.core import wording
from gateway.core.apps import AppResult, Mirrored, for_app, mirrored
from gateway.core.fact_words import counted
from gateway.core.model.blocks import TextBlock
from gateway.core.model.effects import Effect, Kept, MediaWork, Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import MANY_VALUES, Size, size_of
from gateway.core.model.json_values import is_list
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import Accepts, Decisions, TokenBudget, decide
from gateway.core.results.decisions.lengths import lengths_of
from gateway.core.results.decisions.structured import is_said
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import Lowered, lower
from gateway.core.results.rescue import rescue
from gateway.core.tokens import Length, Lengths

_LARGE = 256 * 1024
"""The size of a result above which the pure steps run in a thread, so that other hosts do not wait."""


@dataclass(frozen=True)
class Shaped:
    """A shaped result: the CallToolResult as wire JSON, and how it was made. `lengths` are those known of its media."""

    result: dict[str, Any]
    notes: tuple[Note, ...]
    envelope: Envelope
    effects: tuple[Effect, ...]
    outcomes: Mapping[str, Outcome]
    lengths: Lengths = field(default_factory=dict[str, Length])

    @property
    def kept(self) -> tuple[str, ...]:
        """The handles of the content that was kept for it."""
        found = (outcome.handle for outcome in self.outcomes.values() if isinstance(outcome, Kept))
        return tuple(handle for handle in found if handle is not None)


class _First(NamedTuple):
    """A result after the first decisions; `lowered` is None if they need effects."""

    envelope: Envelope
    content: Mirrored
    decisions: Decisions
    lowered: Lowered | None


def _anything(value: Any) -> bool:
    """Accept any structured content: the host knows no output schema."""
    return True


class Shaper:
    """Shapes results for profiles, with a store, media workers, a describer and a file writer to perform effects.

    `links` makes links to stored content. With `measures`, the length of sound, video and documents is found out, so
    that their cost in tokens can be counted.
    """

    def __init__(
        self,
        store: ContentSink,
        media: MediaWork,
        *,
        max_blocks: int = 1_000,
        describer: ToolDescriber | None = None,
        files: FileWriter | None = None,
        links: ContentLinker | None = None,
        measures: bool = False,
    ) -> None:
        self._runner = EffectRunner(store, media, files=files, links=links)
        self._describer = describer
        self._max_blocks = max_blocks
        self._measures = measures

    async def shape(
        self,
        result: WireObject,
        profile: Profile,
        *,
        owner: str,
        notes: tuple[Note, ...] = (),
        reach: Reach | None = None,
        origin: str | None = None,
        app: bool = False,
        size: Size | None = None,
        accepts: Accepts = _anything,
    ) -> Shaped:
        """Shape one CallToolResult for a profile. Kept content belongs to the principal `owner`.

        `notes` record earlier changes to the result; `reach` has a reader for its links, its host's folders, and its
        caller's tools; `origin` is the upstream that returned it; with `app`, a page reads the result too (MCP Apps);
        `size` is the result's, if it is known; `accepts` says whether structured content fits the output schema that
        the host knows of the tool.

        Never raises for the content of a result: a failed effect becomes a note, and its block a line.
        """
        # Together in one thread, since few results need any effects.
        run = to_thread.run_sync if _is_large(size or _size(result)) else _at_once
        taken = None if app else accepts
        first: _First = await run(self._first, result, profile, notes, taken)
        envelope, content, decisions, lowered = first
        effects: list[Effect] = []
        outcomes: Outcomes = {}
        left_out: tuple[Note, ...] = ()
        if lowered is None or has_outputs(profile):
            runner = self._runner_for(owner, reach or self._runner.reach, origin)

            async def decided(outcomes: Outcomes) -> Decisions:
                if not outcomes:
                    return decisions
                budget = _token_budget(profile)
                return await run(decide, content.envelope, content.profile, outcomes, runner.describes, budget, taken)

            async def performed(wanted: Mapping[str, Effect]) -> Outcomes:
                effects.extend(wanted.values())
                return await perform(wanted, runner)

            settled, outcomes = await settle(decided, performed)
            lowered = await run(lower, content.envelope, content.profile, settled)
            sent, left_out = await with_outputs(lowered.result, envelope, profile, runner)
        else:
            sent = lowered.result
        if app:
            for_page: AppResult = await run(for_app, sent, result, profile, content.first, lowered.notes)
            sent, left_out = for_page.result, (*left_out, *for_page.notes)
        lengths = lengths_of({effect.key: effect for effect in effects}, outcomes)
        if self._measures:
            runner = self._runner_for(owner, reach or self._runner.reach, origin)
            lengths = await measure_media(envelope, sent, lengths, runner)
        return Shaped(sent, (*lowered.notes, *left_out), envelope, tuple(effects), outcomes, lengths)

    def _first(self, result: WireObject, profile: Profile, notes: tuple[Note, ...], accepts: Accepts | None) -> _First:
        """Return the first decisions, and the result if they need no effects. `accepts` is None if a page reads it."""
        envelope = lift_within(result, self._max_blocks)
        if profile.rescue:
            envelope = rescue(envelope)
        envelope = envelope.with_note(*notes)
        content = (
            mirrored(envelope, profile, is_said=is_said(envelope)) if accepts is None else Mirrored(envelope, profile)
        )
        describes = frozenset(self._describer.kinds) if self._describer is not None else frozenset[str]()
        budget = _token_budget(profile)
        decisions = decide(content.envelope, content.profile, {}, describes, budget, accepts)
        lowered = None if decisions.wanted else lower(content.envelope, content.profile, decisions)
        return _First(envelope, content, decisions, lowered)

    def _runner_for(self, owner: str, reach: Reach, origin: str | None) -> EffectRunner:
        describer = None if self._describer is None else DescriberFor(self._describer, reach.tools)
        return replace(self._runner, describer=describer, reach=reach, origin=origin, owner=owner)


def _token_budget(profile: Profile) -> TokenBudget | None:
    """Return the budget of a result for this profile, if it has one."""
    most = profile.tokens.max_result
    return None if most is None else TokenBudget(most, counting_formulas(profile.tokens.formulas))


def _is_large(size: Size) -> bool:
    return size.total > _LARGE or size.values > MANY_VALUES


def _size(result: WireObject) -> Size:
    return size_of(result, most=_LARGE, most_values=MANY_VALUES)


async def _at_once(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def lift_within(result: WireObject, limit: int) -> Envelope:
    """Lift at most `limit` blocks of a result; the rest is dropped before it costs anything, with a line and a note."""
    content: Any = result.get("content")
    more = len(content) - limit if is_list(content) else 0
    if more <= 0:
        return lift(result)
    envelope = lift({**result, "content": content[:limit]})
    words = TextBlock(type="text", text=wording.blocks_left_out(more, limit))
    return envelope.model_copy(update={"blocks": (*envelope.blocks, words)}).with_note(
        Note(kind="dropped", text=f"{counted(more, 'block')} beyond the limit of {limit:,}")
    )
