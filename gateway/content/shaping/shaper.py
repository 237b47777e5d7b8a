"""Lift, settle and lower a tool's raw result into the form that a profile's host shows best."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anyio import to_thread

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
from gateway.content.shaping.outputs import with_outputs
from gateway.content.shaping.settle import Outcomes, settle
from gateway.core import wording
from gateway.core.apps import AppResult, Mirrored, for_app, mirrored
from gateway.core.model.blocks import TextBlock
from gateway.core.model.effects import Effect, MediaWork, Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import MANY_VALUES, size_of
from gateway.core.model.json_values import is_list
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import Decisions, decide
from gateway.core.results.decisions.structured import is_said
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import Lowered, lower
from gateway.core.results.rescue import rescue
from gateway.core.wording import counted

_LARGE = 256 * 1024
"""The size of a result above which the pure steps run in a thread, so that other hosts do not wait."""


@dataclass(frozen=True)
class Shaped:
    """A shaped result: the CallToolResult as wire JSON, and how it was made."""

    result: dict[str, Any]
    notes: tuple[Note, ...]
    envelope: Envelope
    effects: tuple[Effect, ...]
    outcomes: Mapping[str, Outcome]


class Shaper:
    """Shapes results for profiles, with a store, media workers, a describer and a file writer to perform effects.

    `links` makes links to stored content.
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
    ) -> None:
        self._runner = EffectRunner(store, media, files=files, links=links)
        self._describer = describer
        self._max_blocks = max_blocks

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
    ) -> Shaped:
        """Shape one CallToolResult for a profile. Kept content belongs to the principal `owner`.

        `notes` record earlier changes to the result; `reach` has a reader for its links, its host's folders, and its
        caller's tools; `origin` is the upstream that returned it; with `app`, a page reads the result too (MCP Apps).

        Never raises for the content of a result: a failed effect becomes a note, and its block a line.
        """
        run = to_thread.run_sync if _is_large(result) else _at_once
        envelope = (await run(self._read, result, profile)).with_note(*notes)
        reach = reach or self._runner.reach
        describer = None if self._describer is None else DescriberFor(self._describer, reach.tools)
        runner = replace(self._runner, describer=describer, reach=reach, origin=origin, owner=owner)
        effects: list[Effect] = []
        content = await run(_mirrored, envelope, profile) if app else Mirrored(envelope, profile)

        async def decided(outcomes: Outcomes) -> Decisions:
            return await run(decide, content.envelope, content.profile, outcomes, runner.describes)

        async def performed(wanted: Mapping[str, Effect]) -> Outcomes:
            effects.extend(wanted.values())
            return await perform(wanted, runner)

        decisions, outcomes = await settle(decided, performed)
        lowered: Lowered = await run(lower, content.envelope, content.profile, decisions)
        sent, left_out = await with_outputs(lowered.result, envelope, profile, runner)
        if app:
            for_page: AppResult = await run(for_app, sent, result, profile, content.first, lowered.notes)
            sent, left_out = for_page.result, (*left_out, *for_page.notes)
        return Shaped(sent, (*lowered.notes, *left_out), envelope, tuple(effects), outcomes)

    def _read(self, result: WireObject, profile: Profile) -> Envelope:
        envelope = _lifted(result, self._max_blocks)
        return rescue(envelope) if profile.rescue else envelope


def _mirrored(envelope: Envelope, profile: Profile) -> Mirrored:
    return mirrored(envelope, profile, is_said=is_said(envelope))


def _is_large(result: WireObject) -> bool:
    size = size_of(result, most=_LARGE, most_values=MANY_VALUES)
    return size.total > _LARGE or size.values > MANY_VALUES


async def _at_once(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def _lifted(result: WireObject, limit: int) -> Envelope:
    """Lift at most `limit` blocks of a result. The rest is dropped before it costs anything, with a line and a note."""
    content: Any = result.get("content")
    more = len(content) - limit if is_list(content) else 0
    if more <= 0:
        return lift(result)
    envelope = lift({**result, "content": content[:limit]})
    words = TextBlock(type="text", text=wording.blocks_left_out(more, limit))
    return envelope.model_copy(update={"blocks": (*envelope.blocks, words)}).with_note(
        Note(kind="dropped", text=f"{counted(more, 'block')} beyond the limit of {limit:,}")
    )
