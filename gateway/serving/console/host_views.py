"""What the model of a host makes of a tool's result: through the gateway, and without it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import anyio
from anyio import to_process, to_thread

from gateway.config.builtin_profiles import load_profiles
from gateway.config.schema import Settings
from gateway.content.shaping import Shaped, Shaper
from gateway.content.shaping.result_costs import result_costs
from gateway.content.shaping.shape_for_readers import shape_for_readers
from gateway.content.shaping.shaper import lift_within
from gateway.core import apps
from gateway.core.effect_words import effect_words, outcome_words
from gateway.core.model.caller import Caller
from gateway.core.model.effects import Kept
from gateway.core.model.envelope import Envelope
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.match_profile import choose_profile, find_profile
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift
from gateway.core.tokens import read_of_structured, text_tokens, token_words
from gateway.errors import InvalidRequest
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.side import Side, side, summary
from gateway.serving.console.media import MediaShelf
from gateway.serving.console.parts import characters, envelope_parts, seen_parts

_SECONDS = 30.0
_MOST_CHANGED = 8


class ViewedHost(NamedTuple):
    """A host whose model's view can be shown: its name and title, and whether its client is simulated."""

    name: str
    title: str
    is_simulated: bool


def viewed_hosts(settings: Settings) -> list[ViewedHost]:
    """Return every host that can be chosen: the simulated ones, then the other profiles, each by title."""
    simulated = [ViewedHost(host.name, host.title, True) for host in SIMULATORS.values()]
    profiles = load_profiles(settings)
    titles = {host.title for host in simulated}
    others = [
        # The profile of unknown clients and the client that stands for them have one title.
        ViewedHost(name, f"{title} (as it is sent)" if title in titles else title, False)
        for name, title in ((name, one.title or name) for name, one in profiles.items() if name not in SIMULATORS)
    ]
    return [*sorted(simulated, key=_by_title), *sorted(others, key=_by_title)]


def _by_title(host: ViewedHost) -> str:
    return host.title.casefold()


class ViewedCall(NamedTuple):
    """A tool's own result, to be viewed; the tool as its upstream lists it, None if it does not.

    `is_of_page`: a page made the call. `caller` is the profile of the host that made it, None if there was none, and
    `declares_pages` whether that host declared that it shows pages, None if that is not known. `is_tried`: the console
    played that host.
    """

    result: Mapping[str, Any]
    tool: Mapping[str, Any] | None
    is_of_page: bool = False
    caller: str | None = None
    declares_pages: bool | None = None
    is_tried: bool = False

    def shows_pages(self, profile: Profile, name: str) -> bool:
        """Whether the host `name` shows pages: the caller as it declared, others as is known of them."""
        if name != self.caller or self.declares_pages is None:
            return apps.assumed_to_show(profile)
        return apps.shows_apps(apps.DECLARED if self.declares_pages else {}, profile.apps.host)

    @property
    def audience(self) -> apps.Audience:
        """The reader of the result on a host that shows pages."""
        return "app" if self.is_of_page else apps.audience(self.tool)


@dataclass(frozen=True)
class HostViews:
    """Views of results. `shaper` shapes them beside the gateway's own work, with a store that nothing else uses."""

    shaper: Shaper
    shelf: MediaShelf
    limiter: anyio.CapacityLimiter
    most_blocks: int
    """Blocks of a result that the shaper takes, too."""

    async def view(self, call: ViewedCall, name: str, settings: Settings) -> dict[str, Any]:
        """Return what the model of the host `name` gets of a tool's own result.

        `title`, `profile`; `tokens`: what it costs the host's models, by formula, as `given` and as `sent`; `through`
        the gateway, and `direct`ly if the host is simulated: each with its `parts`, a
        `summary` in a few words with its `tone` (good, kept, poor, bad), `problems`, `characters` of text and
        `text_tokens` (estimated); `effects` and `notes` in words: what was done to the result, and what was changed;
        `changed`: the images that were, each `before` and `after`, if as many arrive as there were.

        `readers`: `model` and `page`, in lines what each reads, and both as `sections` with a heading, if the host
        shows a page with it (MCP Apps), or else null. `unseen` says why no model sees it, if only pages call the tool:
        then `through` and `direct` are null.
        `has_own_handles`: content was kept for this view alone, so that its handles name nothing elsewhere.
        `is_declared`: the host of the call is shown, which declared that it shows pages. `supposed`: a page made the
        call, and this host shows none, so what is shown is what its model would get if it made the same call.

        Of what is shown `as it is sent`, `characters` and `text_tokens` count what the model reads, and
        `other_characters` the rest, which is for the host or its page as far as is known.

        Raises:
            InvalidRequest: there is no such host.
        """
        return await self.view_profile(call, _profile_of(name, settings), name)

    async def view_profile(self, call: ViewedCall, profile: Profile, name: str) -> dict[str, Any]:
        """Return the same with this profile, for the model of the simulated host `name`, or as it is sent."""
        shows, (result, tool, *_) = call.shows_pages(profile, name), call
        about = {
            "host": name,
            "title": SIMULATORS[name].title if name in SIMULATORS else profile.title or name,
            "profile": profile.name,
            "is_simulated": name in SIMULATORS,
            "shows_pages": shows,
            "readers": None,
            "unseen": None,
            "is_declared": name == call.caller and call.declares_pages is True and not call.is_tried,
            "supposed": call.is_of_page and not shows,
            "has_own_handles": False,
        }
        if unseen := _unseen(call, shows=shows):
            nothing: dict[str, Any] = dict.fromkeys(("effects", "notes", "tokens", "changed"), ())
            return {**about, **nothing, "unseen": unseen, "direct": None, "through": None}
        shaped = await shape_for_readers(
            self.shaper, result, profile, Caller().principal, shows_pages=shows, audience=call.audience
        )
        has_page = shows and call.audience == "both"
        about = {
            **about,
            "readers": _readers(shaped, profile) if has_page else None,
            "has_own_handles": any(
                isinstance(outcome, Kept) and outcome.handle is not None for outcome in shaped.outcomes.values()
            ),
            "effects": [
                {"what": effect_words(effect), "outcome": outcome_words(shaped.outcomes.get(effect.key))}
                for effect in shaped.effects
            ],
            "notes": [note.model_dump(exclude_none=True) for note in shaped.notes],
            "tokens": _costs(shaped, profile),
        }
        if name not in SIMULATORS:
            return await to_thread.run_sync(
                lambda: self._compared(result, {**about, "direct": None, "through": self._as_sent(shaped, profile)})
            )
        # As the gateway offers it: a tool loses its output schema along with the structured content, unless for a page.
        offered = tool if profile.structured.send == "always" or has_page else None
        seen = partial(_sides, result, shaped.result, tool, offered, name)
        try:
            with anyio.fail_after(_SECONDS):
                # In a process of its own: simulated hosts decode pictures, which nobody has checked.
                unchanged, shown = await to_process.run_sync(seen, cancellable=True, limiter=self.limiter)
        except TimeoutError:
            problem = f"this took longer than {_SECONDS:.0f} s, so only what is sent is shown"
            through = {**self._as_sent(shaped, profile), "problems": [problem]}
            return self._compared(result, {**about, "direct": None, "through": through})

        def compared() -> dict[str, Any]:
            sides = {"direct": self._as_seen(unchanged), "through": self._as_seen(shown)}
            return self._compared(result, {**about, **sides})

        return await to_thread.run_sync(compared)

    def _compared(self, result: Mapping[str, Any], view: dict[str, Any]) -> dict[str, Any]:
        """Add the images that were changed on their way through the gateway."""
        original, sent = (
            _drawable(envelope_parts(lift_within(result, self.most_blocks), self.shelf)),
            _drawable(view["through"]["parts"]),
        )
        pairs = zip(original, sent, strict=True) if len(original) == len(sent) else ()
        changed = [{"before": before, "after": after} for before, after in pairs if before["medium"] != after["medium"]]
        return {**view, "changed": changed[:_MOST_CHANGED]}

    def _as_seen(self, seen: "_Judged") -> dict[str, Any]:
        parts = [] if seen.side.seen is None else seen_parts(seen.side.seen, self.shelf)
        return {
            "parts": parts,
            "summary": seen.words,
            "tone": seen.tone,
            "problems": list(seen.side.problems_in_short),
            "is_flagged": seen.side.seen is not None and seen.side.seen.flagged,
            **_amounts(parts),
        }

    def _as_sent(self, shaped: Shaped, profile: Profile) -> dict[str, Any]:
        envelope: Envelope = lift(shaped.result)
        how = read_of_structured(profile.structured.host, is_alone=not envelope.blocks)
        parts = envelope_parts(envelope, self.shelf)
        read = _amounts(_read_of(parts, how))
        return {
            "parts": parts,
            "summary": "as it is sent",
            "tone": "kept",
            "problems": [],
            "is_flagged": envelope.is_error,
            **read,
            "other_characters": characters(parts) - read["characters"],
        }


def _unseen(call: ViewedCall, *, shows: bool) -> str | None:
    """Say why no model of a host sees the result of a call; None if one does."""
    if shows:
        return "only its page gets this: no model sees it" if call.audience == "app" else None
    is_offered = apps.for_the_model(call.tool) and not (call.is_of_page and call.tool is None)
    return None if is_offered else "not offered here: only pages call this tool, and this host shows none"


def _readers(shaped: Shaped, profile: Profile) -> dict[str, Any]:
    readers = apps.Readers(lift(shaped.result), profile, "both")
    (_, model), (_, page) = sections = list(readers.sections())
    return {"model": model, "page": page, "sections": sections}


def _drawable(parts: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [part for part in parts if part["kind"] == "image" and part["medium"]]


class _Judged(NamedTuple):
    side: Side
    words: str
    tone: str


def _sides(
    result: Mapping[str, Any],
    shaped: Mapping[str, Any],
    tool: Mapping[str, Any] | None,
    offered: Mapping[str, Any] | None,
    name: str,
) -> tuple[_Judged, _Judged]:
    """Simulate the host without the gateway and with it, which offers it the tool as `offered`.

    Runs in a process of its own.
    """
    host = SIMULATORS[name]
    direct, through = side(result, result, tool, host), side(result, shaped, offered, host)
    return _Judged(direct, *summary(direct)), _Judged(through, *summary(through))


def _read_of(parts: list[Mapping[str, Any]], how: Literal["beside", "instead", "never"]) -> list[Mapping[str, Any]]:
    """Return the parts that a model reads, by how it reads structured content."""
    has_structured = any(part.get("form") == "structured" for part in parts)
    if how == "beside" or not has_structured:
        return parts
    return [part for part in parts if (part.get("form") == "structured") is (how == "instead")]


def _amounts(parts: list[Mapping[str, Any]]) -> dict[str, int]:
    return {"characters": characters(parts), "text_tokens": sum(map(_tokens_of_part, parts))}


def _tokens_of_part(part: Mapping[str, Any]) -> int:
    """Return the tokens of a part's text; a text that is shown shortened counts in proportion to its whole length."""
    if "text_tokens" in part:
        return part["text_tokens"]
    text: str = part.get("text") or ""
    return round(text_tokens(text) * max(1.0, part.get("characters", 0) / len(text))) if text else 0


def _costs(shaped: Shaped, profile: Profile) -> list[dict[str, str]]:
    """Return what the result costs by each formula of the host's models, in words."""
    return [
        {"model": cost.title, "given": token_words(cost.given), "sent": token_words(cost.sent)}
        for cost in result_costs(shaped, profile, None)
    ]


def _profile_of(name: str, settings: Settings) -> Profile:
    """Return the profile that this host gets, narrowed to the revision that it speaks."""
    profiles = load_profiles(settings)
    host = SIMULATORS.get(name)
    if host is None:
        if name not in profiles:
            raise InvalidRequest(f"there is no host {name!r}", remedy="`mcp-gateway profiles` lists them")
        return profiles[name]
    if host.profile is not None:
        return narrow(find_profile(profiles, host.profile), host.revision)
    return narrow(choose_profile(profiles, host.caller, None, None).profile, host.revision)
