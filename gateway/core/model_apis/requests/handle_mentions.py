"""Mentions: handles named in a history's user and tool messages, and the media inserted for them. Pure."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from gateway.core import wording
from gateway.core.model.api_media import media_near
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import as_list, is_dict, is_list
from gateway.core.model.turn import Media, Part, Words, reply_messages
from gateway.core.model_apis.requests.handles_in_text import handles_in_text, handles_in_value
from gateway.core.model_apis.requests.request_edits import Target
from gateway.core.profiles.model_profile import ModelProfile

Path: TypeAlias = tuple[str | int, ...]

_OWN_RESULTS = {"anthropic_messages": "content", "bedrock_converse": "content", "gemini": "parts"}
"""The member that holds tool results in user messages, for the formats that have it."""


@dataclass(frozen=True)
class Spot:
    """One place in a history that holds parts: the message's index, the path to the place, and the author's role."""

    message: int
    path: Path
    role: Literal["user", "tool"]
    is_error: bool = False


@dataclass(frozen=True)
class Mention:
    """A handle named in a spot. `part` is the index of the part that names it, if that part contains nothing else."""

    spot: Spot
    handle: str
    part: int | None = None


def mentions(messages: Sequence[Any], profile: ModelProfile) -> tuple[Mention, ...]:
    """Find handles that a history names but does not show yet, in order, each once, and each part to be removed."""
    shown = frozenset(_strings(messages))
    named: list[Mention] = []
    known: set[str] = set()
    near = media_near(messages)
    for index, message in enumerate(messages):
        for spot in _spots(index, message, profile.writing):
            # A caption names media shown beside it; if a client removed the media, only the handle is left.
            for mention in _in_spot(spot, _at(message, spot.path), captions=not near[index]):
                is_new = mention.handle not in known and wording.marker(mention.handle) not in shown
                if is_new or mention.part is not None:
                    named.append(mention)
                    known.add(mention.handle)
    return tuple(named)


def with_media(
    messages: Sequence[Any],
    profile: ModelProfile,
    named: Sequence[Mention],
    parts: Mapping[str, tuple[Part, ...]],
    target: Target,
) -> list[Any]:
    """Insert the parts of each handle into a history: where it is named first, or after the tool messages around that.

    Messages that need no change are the same objects.
    """
    splicing = _Splicing(list(messages), profile, target)
    first = {mention.handle: mention for mention in reversed(named)}
    for mention in named:
        if mention.handle in parts:
            splicing.put(mention, parts[mention.handle] if first[mention.handle] is mention else ())
    return splicing.finished()


def _spots(index: int, message: Any, writing: str) -> Iterator[Spot]:
    if not is_dict(message):
        return
    role, kind = message.get("role"), message.get("type")
    if kind in ("function_call_output", "function_result"):
        place = "output" if kind == "function_call_output" else "result"
        yield Spot(index, (place,), "tool", message.get("is_error") is True)
    elif kind == "user_input":
        yield Spot(index, ("content",), "user")
    elif role not in ("user", "tool", "function"):
        return
    elif writing == "ollama":
        yield Spot(index, (), "tool" if role == "tool" else "user")
    elif writing in _OWN_RESULTS:
        place = _OWN_RESULTS[writing]
        yield from _own_results(index, message.get(place), place)
        yield Spot(index, (place,), "user")
    else:
        yield Spot(index, ("content",), "tool" if role == "tool" else "user")


def _own_results(index: int, content: Any, place: str) -> Iterator[Spot]:
    for number, part in enumerate(as_list(content)):
        if not is_dict(part):
            continue
        if part.get("type") == "tool_result":
            yield Spot(index, (place, number, "content"), "tool", part.get("is_error") is True)
        elif isinstance(part.get("toolResult"), dict):
            yield Spot(index, (place, number, "toolResult", "content"), "tool")
        elif isinstance(part.get("functionResponse"), dict):
            yield Spot(index, (place, number, "functionResponse"), "tool")


def _in_spot(spot: Spot, content: Any, *, captions: bool) -> Iterator[Mention]:
    """Find the handles that a spot names; `captions`: also in captions of media."""
    if isinstance(content, str):
        yield from (Mention(spot, handle) for handle in handles_in_text(content, shown=captions))
    elif isinstance(content, dict):
        yield from (Mention(spot, handle) for handle in handles_in_value(content, shown=captions))
    elif is_list(content):
        for number, part in enumerate(content):
            # The API has no part that is only a handle, so it has to be removed, whatever else it names.
            handles = handles_in_value(part)
            if _is_words(part):
                yield from (Mention(spot, handle) for handle in handles_in_value(part, shown=captions))
            elif handles and not _holds_results(part):
                yield Mention(spot, handles[0], number)


def _holds_results(part: Any) -> bool:
    if not is_dict(part):
        return False
    return part.get("type") == "tool_result" or "toolResult" in part or "functionResponse" in part


def _is_words(part: Any) -> bool:
    """Whether a part is text or JSON, which may name a handle and stay."""
    if not is_dict(part):
        return isinstance(part, str)
    return "json" in part or isinstance(part.get("text"), str)


def _at(message: Any, path: Path) -> Any:
    for step in path:
        message = message[step] if isinstance(step, int) else message.get(step)
    return message


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every short string of a history: markers, and the names of Gemini's parts."""
    if isinstance(value, str):
        if len(value) < 40:
            yield value
    elif depth < 12 and is_dict(value):
        for member in value.values():
            yield from _strings(member, depth + 1)
    elif depth < 12 and isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _strings(item, depth + 1)


@dataclass
class _Splicing:
    """One history being rewritten."""

    messages: list[Any]
    profile: ModelProfile
    target: Target
    copied: set[int] = field(default_factory=set[int])
    late: dict[int, list[Part]] = field(default_factory=dict[int, list[Part]])
    """Parts to be added after the tool messages that end at an index."""
    replaced: list[tuple[Mention, Sequence[Part]]] = field(default_factory=list[tuple[Mention, Sequence[Part]]])
    """Replacements for parts that have to be removed."""

    def put(self, mention: Mention, parts: tuple[Part, ...]) -> None:
        spot, label = mention.spot, Words(wording.marker(mention.handle))
        named = [replace(part, label=mention.handle) if isinstance(part, Media) else part for part in parts]
        media = [part for part in named if isinstance(part, Media)]
        if mention.part is not None:
            here = [one for part in named for one in ((label, part) if isinstance(part, Media) else (part,))] or [label]
            if not all(self._may_stand(spot, part) for part in media):
                here = [label]
                self._after(spot, [label, *media])
            self.replaced.append((mention, here))
        elif media and all(self._may_stand(spot, part) for part in media):
            self._append(spot, [label, *media])
        elif media:
            self._after(spot, [label, *media])

    def finished(self) -> list[Any]:
        # Only these two change indices, so they come last, and from the end backwards.
        for mention, parts in reversed(self.replaced):
            content = _at(self._own(mention.spot.message), mention.spot.path)
            at = cast("int", mention.part)
            content[at : at + 1] = [self.target.write_part(part) for part in parts]
        for end, parts in sorted(self.late.items(), reverse=True):
            said = wording.IMAGES_FOLLOW if self.profile.image.place == "after_reply" else None
            self.messages[end:end] = [*reply_messages(said), self.target.user_message(parts)]
        return self.messages

    def _may_stand(self, spot: Spot, media: Media) -> bool:
        if spot.role == "user":
            return True
        if spot.is_error and self.profile.error.text_only:
            return False
        profile = self.profile
        rules = {"image": profile.image, "audio": profile.audio, "document": profile.document, "video": profile.video}
        late = media.kind == "image" and media.media_type in profile.image.follow_up_types
        return rules[media.kind].place == "in_tool" and not late

    def _own(self, index: int) -> Any:
        if index not in self.copied:
            self.messages[index] = copy.deepcopy(self.messages[index])
            self.copied.add(index)
        return self.messages[index]

    def _append(self, spot: Spot, parts: Sequence[Part]) -> None:
        message = self._own(spot.message)
        if not spot.path:
            # Ollama: images are beside the text, and have no names.
            images = as_list(message.get("images"))
            images += [part.data for part in parts if isinstance(part, Media) and part.data not in images]
            message["images"] = images
            return
        holder, last = _at(message, spot.path[:-1]), spot.path[-1]
        content = holder[last]
        if is_dict(content) and last == "functionResponse":
            shown = [self._named(part) for part in parts if isinstance(part, Media)]
            content["parts"] = [*as_list(content.get("parts")), *shown]
            return
        if isinstance(content, dict):
            content = compact_json(content)
        if not is_list(content):
            content = [self.target.write_part(Words(content))] if content else []
        holder[last] = [*content, *(self.target.write_part(part) for part in parts)]

    def _named(self, media: Media) -> Any:
        """Write a part of a functionResponse with a name, since it has no words before it."""
        ((kind, value),) = self.target.write_part(media).items()
        return {kind: {**value, "displayName": wording.marker(media.label)}}

    def _after(self, spot: Spot, parts: Sequence[Part]) -> None:
        if self.profile.writing in _OWN_RESULTS:
            self._append(replace(spot, path=spot.path[:1], role="user"), parts)
            return
        end = spot.message + 1
        while end < len(self.messages) and self._is_tool_message(end):
            end += 1
        self.late.setdefault(end, []).extend(parts)

    def _is_tool_message(self, index: int) -> bool:
        return any(spot.role == "tool" for spot in _spots(index, self.messages[index], self.profile.writing))
