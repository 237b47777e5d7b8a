"""Plan, perform, lower: a tool's raw result becomes the result that a profile's host shows best."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anyio import to_thread

from gateway.core import wording
from gateway.core.lifting import lift
from gateway.core.lowering.mcp import Lowered, lower
from gateway.core.model.blocks import TextBlock
from gateway.core.model.effects import Effect, Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note
from gateway.core.model.profile import Profile
from gateway.core.model.wire import WireObject
from gateway.core.planning import ROUNDS, plan
from gateway.core.rescue import rescue
from gateway.shaping.effects import Describer, FileWriter, Hands, Keeper, Linker, MediaWork, Reach, perform
from gateway.shaping.outputs import with_outputs

_LARGE = 256 * 1024
"""Characters of JSON above which the pure steps run in a thread, so that other hosts are not kept waiting."""


@dataclass(frozen=True)
class Shaped:
    """A shaped result: the CallToolResult as wire JSON, and how it came about."""

    result: dict[str, Any]
    notes: tuple[Note, ...]
    envelope: Envelope
    effects: tuple[Effect, ...]
    outcomes: Mapping[str, Outcome]


class Shaper:
    """Shapes results for profiles; effects go to a store, to media workers, and to what describes and writes files.

    `links` lead to what is kept.
    """

    def __init__(
        self,
        store: Keeper,
        media: MediaWork,
        *,
        max_blocks: int = 1_000,
        describer: Describer | None = None,
        files: FileWriter | None = None,
        links: Linker | None = None,
    ) -> None:
        self._hands = Hands(store, media, describer, files, links)
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
    ) -> Shaped:
        """Shape one CallToolResult for a profile. `owner` is the principal that kept content belongs to.

        `notes` say what was done to the result before; `reach` is who reads its links, and the folders of its host;
        `origin` is the upstream that it came from.

        Never raises for what a result holds: an effect that fails is a note, and the block becomes a line.
        """
        run = to_thread.run_sync if _chars(result) > _LARGE else _at_once
        envelope = (await run(self._read, result, profile)).with_note(*notes)
        hands = replace(self._hands, reach=reach or self._hands.reach, origin=origin)
        outcomes: dict[str, Outcome] = {}
        effects: list[Effect] = []
        for _ in range(ROUNDS):
            wanted = await run(plan, envelope, profile, outcomes, hands.describes)
            if not wanted:
                break
            effects.extend(wanted)
            outcomes |= await perform({effect.key: effect for effect in wanted}, hands, owner)
        lowered: Lowered = await run(lower, envelope, profile, outcomes, hands.describes)
        sent, left_out = await with_outputs(lowered.result, envelope, profile, hands, owner)
        return Shaped(sent, (*lowered.notes, *left_out), envelope, tuple(effects), outcomes)

    def _read(self, result: WireObject, profile: Profile) -> Envelope:
        envelope = _bounded(lift(result), self._max_blocks)
        return rescue(envelope) if profile.rescue else envelope


async def _at_once(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def _bounded(envelope: Envelope, limit: int) -> Envelope:
    """At most `limit` blocks; the rest is left out, and said."""
    more = len(envelope.blocks) - limit
    if more <= 0:
        return envelope
    words = TextBlock(type="text", text=wording.blocks_left_out(more, limit))
    blocks = (*envelope.blocks[:limit], words)
    return envelope.model_copy(update={"blocks": blocks}).with_note(
        Note(kind="dropped", text=f"{more:,} blocks beyond the limit of {limit:,}")
    )


def _chars(value: Any, depth: int = 0) -> int:
    """About how many characters a JSON value has; strings only, and not below a depth where nothing large hides."""
    if isinstance(value, str):
        return len(value)
    if depth > 8:
        return 0
    if isinstance(value, Mapping):
        return sum(_chars(item, depth + 1) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return sum(_chars(item, depth + 1) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return 0
