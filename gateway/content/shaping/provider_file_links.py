"""Files of providers: fetch them for the APIs of others, and upload large media to APIs that take file ids."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import anyio
import pybase64

from gateway.core.fact_words import plain
from gateway.core.model.base64_text import decoded_size, mend
from gateway.core.model.blocks import Block, LinkBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note
from gateway.core.model.turn import Call, Media, Ref, Turn
from gateway.core.model_apis.turns.references import is_file, reference
from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.results.lift_result import found_in
from gateway.core.results.rescue import block_for
from gateway.errors import ProviderFileError

logger = logging.getLogger(__name__)


class FileFetch(Protocol):
    """A fetched file of a provider."""

    @property
    def content(self) -> bytes: ...
    @property
    def media_type(self) -> str | None: ...


class Files(Protocol):
    """The part of `gateway.content.provider_files` that shaping needs. Both methods raise ProviderFileError."""

    upload_above: int

    @property
    def schemes(self) -> frozenset[str]: ...

    async def upload(self, scheme: str, content: bytes, *, media_type: str, name: str | None = None) -> str: ...

    async def fetch(self, uri: str) -> FileFetch: ...


async def with_files_fetched(calls: Sequence[Call], profile: ModelProfile, files: Files | None) -> list[Call]:
    """Return the calls with the bytes of every provider file that this API cannot take by its id.

    A file that cannot be fetched stays a link, with a note that says why.
    """
    if files is None:
        return list(calls)
    links = {
        block.uri
        for call in calls
        for block in call.envelope.blocks
        if isinstance(block, LinkBlock) and is_file(block) and reference(block, profile, native=False) is None
    }
    fetched = dict(await _all((uri, _fetched(uri, files)) for uri in sorted(links)))
    return [replace(call, envelope=_with(call.envelope, fetched)) for call in calls] if fetched else list(calls)


async def with_files_uploaded(turn: Turn, profile: ModelProfile, files: Files | None) -> tuple[Turn, tuple[Note, ...]]:
    """Return the turn with its large media uploaded to the provider, wherever the API takes file ids.

    Media that cannot be uploaded stays inside the request, with a note.
    """
    scheme = next((one for one in profile.file.schemes if files is not None and one in files.schemes), None)
    if files is None or scheme is None:
        return turn, ()
    in_tool = [media for answer in turn.answers if answer.raw is None for media in answer.media]
    after = [follow_up.media for follow_up in turn.follow_ups]
    # Everything allowed in a tool's message is also allowed in the user's.
    large = [*in_tool, *after] if profile.file.place == "in_tool" else after
    wanted = {
        media.label: media
        for media in large
        if media.ref is None and media.kind in profile.file.kinds and decoded_size(media.data) > files.upload_above
    }
    uploaded = dict(await _all((label, _uploaded(media, scheme, files)) for label, media in wanted.items()))

    def put(part: Any) -> Any:
        done = uploaded.get(part.label) if isinstance(part, Media) else None
        return done if isinstance(done, Media) else part

    answers = tuple(replace(answer, parts=tuple(put(part) for part in answer.parts)) for answer in turn.answers)
    follow_ups = tuple(replace(one, media=put(one.media)) for one in turn.follow_ups)
    notes = tuple(_upload_note(label, done, scheme) for label, done in uploaded.items())
    return Turn(answers, follow_ups, turn.reply), notes


_Fetch: TypeAlias = "Block | str"


async def _fetched(uri: str, files: Files) -> _Fetch:
    """Return the file as a block with bytes, or the reason why it cannot be fetched."""
    try:
        file = await files.fetch(uri)
    except ProviderFileError as error:
        logger.info("%s cannot be fetched: %s", plain(uri), error)
        return error.message
    found = found_in(mend(pybase64.b64encode_as_string(file.content)), file.media_type)
    return block_for(found) if found is not None else "it is empty"


def _with(envelope: Envelope, fetched: Mapping[str, _Fetch]) -> Envelope:
    blocks: list[Block] = []
    notes: list[Note] = []
    for index, block in enumerate(envelope.blocks):
        got = fetched.get(block.uri) if isinstance(block, LinkBlock) else None
        if got is None or not isinstance(block, LinkBlock):
            blocks.append(block)
        elif isinstance(got, str):
            blocks.append(block)
            notes.append(Note(kind="failed", text=f"{plain(block.uri)}: {got}", block=index))
        else:
            blocks.append(got)
            notes.append(Note(kind="moved", text=f"{plain(block.uri)}: fetched from its provider", block=index))
    return envelope.model_copy(update={"blocks": tuple(blocks)}).with_note(*notes) if notes else envelope


async def _uploaded(media: Media, scheme: str, files: Files) -> Media | str:
    """Return the media with its file id, or the reason why it cannot be uploaded."""
    try:
        content = pybase64.b64decode(media.data)
        uri = await files.upload(scheme, content, media_type=media.media_type, name=media.title)
    except ProviderFileError as error:
        logger.info("%s cannot be uploaded: %s", media.label, error)
        return error.message
    file_id = uri.partition(":")[2]
    return replace(media, data="", ref=Ref("url" if "://" in file_id else "file", file_id))


def _upload_note(label: str, done: Media | str, scheme: str) -> Note:
    if isinstance(done, str):
        return Note(kind="failed", text=f"{label} stays inside the request: {done}")
    return Note(kind="converted", text=f"{label} as a file of its provider ({scheme})")


async def _all(work: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Await all concurrently, and return their results in the order given."""
    waiting = list(work)
    results: dict[str, Any] = {}

    async def one(key: str, awaitable: Any) -> None:
        results[key] = await awaitable

    async with anyio.create_task_group() as tasks:
        for key, awaitable in waiting:
            tasks.start_soon(one, key, awaitable)
    return [(key, results[key]) for key, _ in waiting]
