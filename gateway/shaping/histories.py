"""A history for a model API: the handles that its messages name become media, from a store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pybase64

from gateway.config.builtin_profiles import model_profiles
from gateway.config.schema import MediaSettings
from gateway.core.assembling import assemble
from gateway.core.histories import Mention, mentions, with_media
from gateway.core.lifting import lift
from gateway.core.lowering import (
    anthropic_messages,
    bedrock_converse,
    cohere,
    gemini,
    gemini_interactions,
    mistral,
    openai_chat,
    openai_responses,
)
from gateway.core.model.effects import Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.model.media_types import family
from gateway.core.model.model_profile import ModelProfile, Writing
from gateway.core.model.notes import Note
from gateway.core.model.turn import Call, Media, Part, Words
from gateway.core.model_profiles import choose_model_profile
from gateway.core.planning import ROUNDS
from gateway.errors import ContentError, InvalidRequest
from gateway.shaping.effects import Hands, perform
from gateway.shaping.turns import Nowhere
from gateway.store import ContentStore, fetch_bytes

_MOST = 200
"""So many handles of one history are opened; the rest stays as it is, with a note."""

_WRITE: Mapping[Writing, Callable[[Part], Any]] = {
    "openai_chat": openai_chat.part,
    "openai_responses": openai_responses.part,
    "anthropic_messages": anthropic_messages.part,
    "gemini": gemini.part,
    "gemini_interactions": gemini_interactions.part,
    "bedrock_converse": bedrock_converse.part,
    "mistral": mistral.part,
    "cohere": cohere.part,
    "ollama": lambda part: part.text if isinstance(part, Words) else part.data,
}


@dataclass(frozen=True)
class Resolved:
    """A history whose handles are media as far as they could be, and a note for each that is not."""

    messages: list[Any]
    notes: tuple[Note, ...]


async def resolve_messages(
    messages: Sequence[Any],
    target: str,
    store: ContentStore,
    *,
    owner: str = "local",
    model: str | None = None,
    base_url: str | None = None,
) -> Resolved:
    """The history with the content behind its handles, in the form that the model API accepts.

    Looked for in user and tool messages: the lines that the gateway wrote (`...; handle img_7h3k2m9q4w8x]`),
    `content://` uris, and handle objects (`{"kind": "image", "handle_id": "img_7h3k2m9q4w8x"}`), as text or as a part.
    The words stay; the media stands after them, once in the history, or after the tool messages where the API does
    not take it in one. A part that is nothing but a handle is replaced. Resolving twice changes nothing more, and
    messages that name no handle stay the very same objects.

    Args:
        messages: the request's messages (`contents` of Gemini, `input` of OpenAI Responses), as plain JSON values.
        target: as for `lower_turn`; so are `model` and `base_url`.
        store: where the handles lead.
        owner: whose content may be read; what belongs to others is not there.

    Raises:
        ProfileError: there is no such target.
        InvalidRequest: the messages are no list.
    """
    if not isinstance(messages, list | tuple):
        raise InvalidRequest("messages have to be a list")
    profile = choose_model_profile(model_profiles(), target, model=model, base_url=base_url)
    named, notes = mentions(messages, profile), list[Note]()
    opened: dict[str, Envelope] = {}
    for mention in named:
        why = f"only {_MOST} handles are opened at once"
        envelope = await _opened(mention, store, owner) if len(opened) < _MOST else why
        if isinstance(envelope, Envelope):
            opened[mention.handle] = envelope
        else:
            notes.append(Note(kind="failed", text=f"{mention.handle} in message {mention.spot.message}: {envelope}"))
    parts, more = await _parts(opened, profile)
    for mention in named:
        if mention.handle in parts:
            notes.append(_note(mention, parts[mention.handle]))
    unreadable = {
        one.handle: (Words(_words(one)),) for one in named if one.part is not None and one.handle not in opened
    }
    resolved = with_media(messages, profile, named, {**parts, **unreadable}, _WRITE[profile.writing])
    return Resolved(resolved, (*notes, *more))


def _note(mention: Mention, parts: tuple[Part, ...]) -> Note:
    where = f"{mention.handle} in message {mention.spot.message}"
    if any(isinstance(part, Media) for part in parts):
        return Note(kind="rescued", text=f"{where}: the content itself")
    return Note(kind="named", text=f"{where}: in words only, the API does not take it as media")


def _words(mention: Mention) -> str:
    return f"[content://{mention.handle}: it cannot be read]"


async def _opened(mention: Mention, store: ContentStore, owner: str) -> Envelope | str:
    """The content as an envelope of one block, or why there is none."""
    try:
        stored = await store.metadata(mention.handle, owner=owner)
        if family(stored.media_type) == "text" and mention.part is None:
            return "it is text, and stays as it is"
        content = await fetch_bytes(store, mention.handle, owner=owner)
    except ContentError as error:
        return error.message
    data, kind = pybase64.b64encode_as_string(content), family(stored.media_type)
    if kind in ("image", "audio"):
        return lift({"content": [{"type": kind, "data": data, "mimeType": stored.media_type}]})
    resource = {"uri": stored.name or stored.uri, "blob": data, "mimeType": stored.media_type}
    return lift({"content": [{"type": "resource", "resource": resource}]})


async def _parts(
    opened: Mapping[str, Envelope], profile: ModelProfile
) -> tuple[dict[str, tuple[Part, ...]], tuple[Note, ...]]:
    """The parts of each content, made to fit the API: media wherever some message of it takes it, else words."""
    from gateway.media import MediaWorkers  # processes are wanted only where an image has to be fitted

    calls = [Call(handle, handle, envelope) for handle, envelope in opened.items()]
    everywhere = _in_place(profile)
    outcomes: dict[str, Outcome] = {}
    assembled = assemble(calls, everywhere, outcomes)
    async with MediaWorkers(MediaSettings()) as media:
        for _ in range(ROUNDS):
            if not assembled.wanted:
                break
            outcomes |= await perform(assembled.wanted, Hands(Nowhere(), media), "")
            assembled = assemble(calls, everywhere, outcomes)
    return {answer.call.id: answer.parts for answer in assembled.turn.answers}, assembled.notes


def _in_place(profile: ModelProfile) -> ModelProfile:
    """The profile with everything that it takes somewhere in place: where it goes, the history decides."""
    kinds = {"image": profile.image, "audio": profile.audio, "document": profile.document, "video": profile.video}
    types = (*profile.image.types, *profile.image.follow_up_types)
    update: dict[str, Any] = {
        name: rules.model_copy(update={"place": "in_tool"}) for name, rules in kinds.items() if rules.place != "none"
    }
    if "image" in update:
        update["image"] = update["image"].model_copy(update={"types": types, "follow_up_types": ()})
    return profile.model_copy(update=update)
