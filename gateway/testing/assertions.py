"""Assertions for authors of MCP servers: does a host's model see what the tool returned?

from gateway.testing import assert_seen

assert_seen(result, host="codex", images=1)

And for authors of stores: does the store keep the contract? `await check_store(MyStore)`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gateway.core.fact_words import counted, plain
from gateway.core.model.json_values import is_object
from gateway.core.profiles.match_profile import known_name
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.originals import original_images
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenPart, SeenText
from gateway.hosts.simulators.verdict import Verdict, judge_seen
from gateway.testing.unknown_host import not_simulated

if TYPE_CHECKING:
    from gateway.content.store import ContentStore
    from gateway.testing.advice import Advice

__all__ = ["HOSTS", "assert_seen", "check_store"]

HOSTS: tuple[str, ...] = tuple(SIMULATORS)
"""The names of the simulated hosts. `unknown` is a client of which nothing is known."""

_SHOWN = 160
_PLACE = re.compile(r"content\[(\d+)\]")
_MOST_PARTS = 12


def assert_seen(
    result: Any, *, host: str, images: int | None = None, tool: Any = None, through_gateway: bool = False
) -> None:
    """Fail unless the model of `host` gets all that a tool returned: each image as an image, all text, no base64.

    `result` is a CallToolResult, as JSON (the bare result, or a JSON-RPC response) or as an object of an MCP SDK.
    `tool` is the tool's description from tools/list, if its `outputSchema` is to be considered. `images` is the number
    of images that the model must see; None: as many as the result has and the host can show. With `through_gateway` the
    result is first shaped for this host, as the gateway would send it.

    Raises:
        AssertionError: something does not arrive. The message says what, what the model gets, and what to change.
        ValueError: there is no such host, or no simulator of it.
        TypeError: `result` or `tool` is neither JSON nor an object of an SDK.
    """
    known = known_name(SIMULATORS, host)
    if known is None:
        raise ValueError(not_simulated(host))
    simulated = SIMULATORS[known]
    original = _wire(result, "result")
    declared = None if tool is None else _wire(tool, "tool")
    trial = _Trial(simulated, declared, images, through_gateway)
    found = trial.on(original)
    if found.problems:
        raise AssertionError("\n".join(_explained(trial, found, original)))


class _Found(NamedTuple):
    """What the model of a host sees of a result, the verdict, and what is wrong, in words."""

    seen: Seen
    verdict: Verdict
    problems: tuple[str, ...]


@dataclass(frozen=True)
class _Trial:
    """What a result is tried with: the host, the tool, the images that are expected, and whether it is shaped first."""

    host: SimulatedHost
    tool: dict[str, Any] | None
    images: int | None
    through_gateway: bool

    def on(self, result: dict[str, Any]) -> _Found:
        """Simulate the host on a result."""
        sent = _shaped(result, self.host) if self.through_gateway else result
        # Through the gateway, a tool loses its output schema along with the structured content.
        seen = self.host.see(sent, None if self.through_gateway else self.tool)
        verdict = judge_seen(result, seen, self.host)
        return _Found(seen, verdict, (*self._miscounted(result, seen), *verdict.problems))

    def _miscounted(self, result: dict[str, Any], seen: Seen) -> Iterator[str]:
        """Yield that another number of images is seen than is expected, and why that cannot be otherwise."""
        count = sum(image.picture is not None or self.host.can_show(image.media_type) for image in seen.images)
        if self.images is None or count == self.images:
            return
        why, has = "", len(original_images(result))
        if has < self.images:
            why = f"; the result has {has or 'none'}"
        elif not self.host.shows_images:
            why = f"; {self.host.title} shows its model no images"
        were = "was" if self.images == 1 else "were"
        yield f"{counted(self.images, 'image')} {were} expected, and the model sees {count}{why}"

    def is_changed_by(self, advice: "Advice", result: dict[str, Any], found: _Found) -> bool:
        """Whether something that is wrong is not, without what the advice is about."""
        without = _without(advice, result)
        return without is None or not set(found.problems) <= set(self.on(without).problems)


def _without(advice: "Advice", result: dict[str, Any]) -> dict[str, Any] | None:
    """Return a result without what an advice is about; None if it is about no single part."""
    if advice.rule.startswith("structured-") or advice.where == "structuredContent":
        return {key: value for key, value in result.items() if key != "structuredContent"}
    if advice.rule == "image-beside-error":
        return {key: value for key, value in result.items() if key != "isError"}
    place = _PLACE.fullmatch(advice.where)
    content = result.get("content")
    if place is None or not isinstance(content, list):
        return None
    blocks = [*cast("list[Any]", content)]
    blocks[int(place[1])] = {"type": "text", "text": "-"}  # the places of the others stay
    return {**result, "content": blocks}


PATIENCE_SECONDS = 60.0
"""Time limit for a store for the check of one promise."""


async def check_store(make_store: "Callable[[], ContentStore]", *, patience: float = PATIENCE_SECONDS) -> None:
    """Fail unless the store keeps every promise of `gateway.content.store.ContentStore`. All are checked.

    `make_store` is called for each promise, and may return a new store or always the same, because every check uses
    owners of its own. Each check may take at most `patience` seconds. Needs 20 MB of space. To run each check as a
    separate test, parametrize over `gateway.testing.contract.CHECKS`, as docs/stores.md shows.

    Raises:
        AssertionError: lists the promises that are not kept, one per line, with what was found instead.
    """
    import anyio

    from gateway.testing.contract import CHECKS

    problems: list[str] = []
    for promise, check in CHECKS.items():
        try:
            with anyio.move_on_after(patience) as limit:
                await check(make_store())
            if limit.cancelled_caught:
                problems.append(f"  - {promise}: the store was not done within {patience:g} s")
        except Exception as error:  # a foreign store may raise anything
            problems.append(f"  - {promise}: {plain(str(error) or repr(error), _SHOWN)} ({type(error).__name__})")
    if problems:
        raise AssertionError("\n".join([f"{len(problems)} of {len(CHECKS)} promises are not kept:", *problems]))


def _wire(value: Any, what: str) -> dict[str, Any]:
    """Return the value as wire JSON: an SDK's model is dumped by alias, without unset members."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        value = dump(mode="json", by_alias=True, exclude_none=True)
    if not is_object(value):
        raise TypeError(f"{what} has to be JSON or an object of an MCP SDK, not {type(value).__name__}")
    known = dict(value)
    if "jsonrpc" in known and isinstance(known.get("result"), Mapping):
        known = dict(cast("Mapping[str, Any]", known["result"]))
    return json.loads(json.dumps(known))


def _shaped(result: dict[str, Any], host: SimulatedHost) -> dict[str, Any]:
    """Return the result as the gateway sends it to this host."""
    # In a separate thread, because the test may be running inside an event loop.
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(_shape, result, host).result()


def _shape(result: dict[str, Any], host: SimulatedHost) -> dict[str, Any]:
    import anyio

    from gateway.config.builtin_profiles import builtin_profiles
    from gateway.config.schema import Settings
    from gateway.content.media import MediaWorkers
    from gateway.content.shaping import Shaper
    from gateway.content.store import MemoryStore
    from gateway.core.model.caller import Caller
    from gateway.core.profiles.host_profiles import narrow
    from gateway.core.profiles.match_profile import choose_profile

    async def shape() -> dict[str, Any]:
        settings = Settings()
        caller = Caller(
            revision=host.revision,
            client_name=str(host.client_info["name"]),
            user_agent=host.user_agent,
            profile=host.profile,
        )
        profile = narrow(choose_profile(builtin_profiles(), caller, None).profile, host.revision)
        async with MediaWorkers(settings.media) as media:
            shaper = Shaper(MemoryStore(settings.store), media)
            return (await shaper.shape(result, profile, owner=caller.principal)).result

    return anyio.run(shape)


def _explained(trial: _Trial, found: _Found, original: dict[str, Any]) -> Iterator[str]:
    from gateway.testing.advice import unique
    from gateway.testing.result_advice import advise_on_result

    host, (seen, verdict, problems) = trial.host, found
    reader = "a person at" if host.for_people else "the model of"
    by = ", through the gateway" if trial.through_gateway else ""
    images = f"{verdict.expected} {'image' if verdict.expected == 1 else 'images'}"
    yield f"{reader} {host.title} does not see all of it{by} ({verdict.shown} of {images}):"
    yield from (f"  - {problem}" for problem in problems)
    yield "it gets:"
    yield from (f"  {_part(part)}" for part in seen.parts[:_MOST_PARTS])
    if len(seen.parts) > _MOST_PARTS:
        yield f"  ... and {counted(len(seen.parts) - _MOST_PARTS, 'more part')}"
    if not seen.parts:
        yield "  nothing"
    advice = unique(one for one in advise_on_result(original, trial.tool) if trial.is_changed_by(one, original, found))
    if advice:
        yield "to change:"
        yield from (f"  - {one}" for one in advice)
    if not trial.through_gateway:
        yield "with through_gateway=True: what it would get through the gateway"


def _part(part: SeenPart) -> str:
    match part:
        case SeenImage():
            size = f" {part.pixels[0]}x{part.pixels[1]}" if part.pixels else ""
            refused = "" if part.picture else ", which cannot be decoded"
            return f"image {plain(part.media_type, 60)}{size}, {part.where}{refused}"
        case SeenAudio():
            return f"sound {plain(part.media_type, 60)}, {part.where}"
        case SeenDocument():
            return f"document {plain(part.media_type, 60)}, {part.where}"
        case SeenText():
            return f"{part.form}, {counted(len(part.text), 'character')}: {plain(part.text, _SHOWN)}"
