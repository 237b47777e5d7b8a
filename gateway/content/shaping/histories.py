"""Replace the handles in a model API's history by their media, read from a store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pybase64

from gateway.content.shaping.effects import EffectRunner
from gateway.content.shaping.settle import settle_turn
from gateway.content.shaping.turns import BOTO3_TARGET, Nowhere, media_or_shared, model_profile_for
from gateway.content.store import ContentStore, fetch_bytes
from gateway.core.model.envelope import Envelope
from gateway.core.model.media_types import family
from gateway.core.model.notes import Note
from gateway.core.model.turn import Call, Media, Part, Words
from gateway.core.model_apis import bedrock_converse
from gateway.core.model_apis.registry import APIS
from gateway.core.model_apis.requests.accepted_media import in_user_message
from gateway.core.model_apis.requests.handle_mentions import Mention, mentions, with_media
from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.results.lift_result import lift
from gateway.errors import ContentError, InvalidRequest

_MOST = 200
"""The number of handles opened in one history; the others stay unchanged, with a note."""


@dataclass(frozen=True)
class Resolved:
    """A history with media for its handles as far as possible, and notes on what was done for each."""

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
    """Put the content behind the handles of a history into its messages, in the form that the model API accepts.

    User and tool messages are searched for lines that the gateway wrote (`...; handle img_7h3k2m9q4w8x]`),
    `content://` URIs, and handle objects (`{"kind": "image", "handle_id": "img_7h3k2m9q4w8x"}`), as text or as a part.
    The text stays, and the media is put after it, once per history, or after the tool messages if the API does not
    take it inside one. A part that is only a handle is replaced. Resolving a history again changes nothing, and
    messages without handles stay the same objects. The handle in a caption of media already there is not opened.

    Args:
        messages: the request's messages (`contents` of Gemini, `input` of OpenAI Responses), as plain JSON values.
        target: the model API, as for `lower_turn`; so are `model` and `base_url`.
        store: the store that has the content.
        owner: the owner of the content; content of other owners is not found.

    Raises:
        ProfileError: the target does not exist.
        InvalidRequest: the messages are not a list.
    """
    if not isinstance(messages, list | tuple):
        raise InvalidRequest("messages have to be a list")
    profile = model_profile_for(target, model, base_url)
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
    resolved = with_media(messages, profile, named, {**parts, **unreadable}, APIS[profile.writing])
    return Resolved(bedrock_converse.for_boto3(resolved) if target == BOTO3_TARGET else resolved, (*notes, *more))


def _note(mention: Mention, parts: tuple[Part, ...]) -> Note:
    where = f"{mention.handle} in message {mention.spot.message}"
    if any(isinstance(part, Media) for part in parts):
        return Note(kind="rescued", text=f"{where}: the content itself")
    return Note(kind="named", text=f"{where}: in words only, the API does not take it as media")


def _words(mention: Mention) -> str:
    return f"[content://{mention.handle}: it cannot be read]"


async def _opened(mention: Mention, store: ContentStore, owner: str) -> Envelope | str:
    """Return the content as an envelope of one block, or the reason why it is not opened."""
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
    """Return the parts for each content, fitted to the API: media if any kind of its messages takes it, else words."""
    calls = [Call(handle, handle, envelope) for handle, envelope in opened.items()]
    everywhere = in_user_message(profile)
    async with media_or_shared(None) as workers:
        done = await settle_turn(calls, everywhere, EffectRunner(Nowhere(), workers))
    return {answer.call.id: answer.parts for answer in done.turn.answers}, done.notes
