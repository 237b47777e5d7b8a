"""The interface of the media workers: fit images, read and render PDF, convert and probe sound."""

import json
from typing import Any

from gateway.content.media.frames import packed
from gateway.content.media.pool import Pool, TookTooLong, WorkedTooLong, WorkerLost
from gateway.content.media.process import WorkerReply
from gateway.core.model.base64_text import decoded
from gateway.core.model.effects import (
    AudioTarget,
    ConvertAudio,
    Converted,
    Crop,
    DocumentRead,
    Failed,
    FitImage,
    Fitted,
    ImageTarget,
    JsonFound,
    JsonOutlined,
    MediaEffect,
    MediaOutcomeT,
    OutlineJson,
    Probe,
    Probed,
    QueryJson,
    ReadDocument,
    Rendered,
    RenderPages,
)
from gateway.core.model.media_types import HEAD_BYTES, PixelSize, family, inspect, normalise
from gateway.errors import MediaError

READABLE_IMAGES = frozenset(
    {
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/bmp",
        "image/tiff",
        "image/avif",
        "image/heic",
        "image/heif",
        "image/svg+xml",
    }
)
"""Image types that can be decoded; HEIC and HEIF need the extra `heic`."""

READABLE_SOUND = frozenset(
    {"audio/wav", "audio/mpeg", "audio/flac", "audio/ogg", "audio/mp4", "audio/webm", "audio/aac", "audio/aiff"}
)
"""Sound types that can be decoded; all but WAV and MP3 need the extra `audio`."""

_SVG = "image/svg+xml"
_PDF = "application/pdf"
_JSON = "application/json"
_NOT_TRIED = "a page before it took too long"
_EITHER = {"video/mp4": "audio/mp4", "video/webm": "audio/webm", "video/quicktime": "audio/mp4"}
"""Types whose first bytes do not show whether there is a picture; the declared type decides."""


class MediaWorkers(Pool):
    """All media operations, each in a worker process and within the limits of `[media]`."""

    async def run(self, effect: MediaEffect[MediaOutcomeT]) -> MediaOutcomeT:
        """The outcome of an effect (`gateway.core.model.effects`), by the method below that performs it."""
        outcome: Any = await self._outcome(effect)
        return outcome

    async def _outcome(self, effect: MediaEffect[Any]) -> Any:
        content = effect.data if isinstance(effect.data, bytes) else decoded(effect.data)
        match effect:
            case FitImage():
                return await self.fit_image(content, effect.media_type, effect.target, effect.crop)
            case ReadDocument():
                return await self.read_document(content, effect.max_pages, effect.max_chars)
            case RenderPages():
                return await self.render_pages(content, effect.pages, effect.target)
            case ConvertAudio():
                return await self.convert_audio(content, effect.media_type, effect.target)
            case Probe():
                return await self.probe(content, effect.media_type)
            case QueryJson():
                return await self.query_json(content, effect.expression, effect.max_chars)
            case OutlineJson():
                return await self.outline_json(content)
            case _:
                raise TypeError(f"{type(effect).__name__} is not work on media")

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None) -> Fitted:
        """Make an image that `target` takes: crop `content`, turn it upright, scale it down, convert or rasterize it.

        The type is read from the bytes; the declared `media_type` counts only if they do not show it. An image or an
        animation that already fits `target` is decoded and returned byte for byte. An animation that has to change
        keeps moving if `target` takes its type; otherwise its first frame is returned. `crop` is in pixels of the
        original, and is cut to the image. Raises MediaError if the image is over a limit, broken, of a type that
        cannot be read, or cannot be made to fit.
        """
        self._judge_size(content)
        really = self._image_type(content, media_type)
        options = {"target": packed(target), "crop": packed(crop)}
        return _fitted(await self.do("fit", content, really, options))

    async def read_document(self, content: bytes, max_pages: int, max_chars: int) -> DocumentRead:
        """Read a PDF's page count, its title, and the text of its first `max_pages`, at most `max_chars` in all.

        At the limit the last text is cut, and the pages after it are left out. Raises MediaError if the PDF is over a
        limit, broken, or needs a password.
        """
        self._judge_document(content)
        answer = await self.do("read", content, _PDF, {"max_pages": max_pages, "max_chars": max_chars})
        try:
            read = json.loads(answer.body)
            title = None if read["title"] is None else str(read["title"])
            return DocumentRead(int(read["pages"]), tuple(map(str, read["texts"])), title)
        except (KeyError, TypeError, ValueError) as broken:
            raise MediaError("its worker answered with something that is not a document") from broken

    async def query_json(self, content: bytes, expression: str, max_chars: int) -> JsonFound:
        """Ask a JSON text with a JMESPath expression. Rows come as a table if that is smaller.

        Raises MediaError if the text is not JSON, the expression is wrong or takes too long, or it finds too much.
        """
        self._judge_size(content)
        try:
            answer = await self.do("query", content, _JSON, {"expression": expression, "max_chars": max_chars})
        except WorkedTooLong:
            raise  # the time of all media of a result together
        except TookTooLong as late:
            words = f"the query took longer than {self._settings.timeout:g} s"
            raise TookTooLong(words, remedy="ask for less at a time, or raise media.timeout") from late
        return JsonFound(answer.body.decode())

    async def outline_json(self, content: bytes) -> JsonOutlined:
        """Write the shape of a JSON text, in several lengths. Raises MediaError if it is over a limit."""
        self._judge_size(content)
        answer = await self.do("outline", content, _JSON, {})
        try:
            return JsonOutlined(tuple(map(str, json.loads(answer.body))))
        except (TypeError, ValueError) as broken:
            raise MediaError("its worker answered with something that is not a list of texts") from broken

    async def render_pages(self, content: bytes, pages: tuple[int, ...], target: ImageTarget) -> Rendered:
        """Render `pages` of a PDF (counted from 1) as images that `target` takes. `original` is their rendered size.

        A page that cannot be rendered is a Failed in its place; after one that took too long, the others are not tried.
        Raises MediaError if the PDF is over a limit, broken, or needs a password.
        """
        self._judge_document(content)
        images: list[Fitted | Failed] = []
        is_late = False
        for page in pages:
            # Each is a job of its own: a killed worker or a timeout costs one page.
            try:
                images.append(Failed(_NOT_TRIED) if is_late else await self._page(content, page, target))
            except (TookTooLong, WorkerLost) as error:
                is_late = isinstance(error, TookTooLong)
                images.append(Failed(error.message))
        return Rendered(tuple(images))

    async def _page(self, content: bytes, page: int, target: ImageTarget) -> Fitted | Failed:
        answer = await self.do("render", content, _PDF, {"page": page, "target": packed(target)})
        failed = answer.header.get("failed")
        return Failed(str(failed)[:500]) if failed else _fitted(answer)

    async def convert_audio(self, content: bytes, media_type: str, target: AudioTarget) -> Converted:
        """Make sound that `target` takes: `content` is unchanged, else converted, made smaller, and cut, in this order.

        The type is read from the bytes; if they do not show whether there is a picture beside the sound, the declared
        `media_type` decides. A length of 0 seconds means unchanged sound of unknown length. Raises MediaError if the
        sound is over a limit, broken, or cannot be made to fit, or if the extra that it needs is missing.
        """
        self._judge_size(content)
        really = _sound_type(content, media_type)
        if really not in READABLE_SOUND:
            raise MediaError(f"{really or 'content of an unknown type'} cannot be read as sound")
        answer = await self.do("convert", content, really, {"target": packed(target)})
        header = answer.header
        try:
            sizes = float(header["seconds"]), float(header["original"])
            return Converted(answer.body.decode("ascii"), str(header["media_type"]), *sizes)
        except (KeyError, TypeError, ValueError) as broken:
            raise MediaError("its worker answered with something that is not sound") from broken

    async def probe(self, content: bytes, media_type: str) -> Probed:
        """Read facts about sound or video without decoding it. Never raises; unknown facts are None."""
        really = _sound_type(content, media_type)
        if family(really) not in ("audio", "video"):
            return Probed()
        try:
            self._judge_size(content)
            return _probed((await self.do("probe", content, really or "", {})).header)
        except MediaError:
            return Probed()

    def _judge_document(self, content: bytes) -> None:
        self._judge_size(content)
        # Readers look for the beginning in the first 1,024 bytes (PDF Reference 1.7, appendix H.3, note 13).
        if b"%PDF-" not in content[:1_029]:
            raise MediaError("it is not a PDF")

    def _judge_size(self, content: bytes) -> None:
        limit = self._settings.max_input_bytes
        if not content:
            raise MediaError("it is empty")
        if len(content) > limit:
            raise MediaError(
                f"it has {len(content):,} bytes, more than the limit of {limit:,}", remedy="see media.max_input_bytes"
            )

    def _image_type(self, content: bytes, declared: str) -> str:
        """Check the header and return the actual type of `content`, without decoding and without a worker."""
        limit = self._settings.max_pixels
        finding = inspect(content[:HEAD_BYTES])
        really = finding.media_type or normalise(declared)
        if really == "application/gzip" and normalise(declared) == _SVG:
            really = _SVG
        if really not in READABLE_IMAGES:
            raise MediaError(f"{really or 'content of an unknown type'} cannot be read as an image")
        # A vector graphic has no pixels until it is rendered, at a bounded size.
        if finding.size and really != _SVG and finding.size.width * finding.size.height > limit:
            raise MediaError(
                f"it has {finding.size.width:,} x {finding.size.height:,} pixels, more than the limit of {limit:,}",
                remedy="see media.max_pixels",
            )
        return really


def _sound_type(content: bytes, declared: str) -> str | None:
    told = normalise(declared)
    really = inspect(content[:HEAD_BYTES]).media_type or told
    return _EITHER.get(really or "", really) if family(told) == "audio" else really


def _fitted(answer: WorkerReply) -> Fitted:
    header = answer.header
    try:
        pixels, original = (PixelSize(*map(int, header[key])) for key in ("pixels", "original"))
        frames = int(header["frames"])
        return Fitted(answer.body.decode("ascii"), str(header["media_type"]), pixels, original, frames)
    except (KeyError, TypeError, ValueError) as broken:
        raise MediaError("its worker answered with something that is not an image") from broken


def _probed(header: Any) -> Probed:
    def number(key: str) -> int | None:
        return None if header[key] is None else int(header[key])

    try:
        seconds, codec, pixels = header["seconds"], header["codec"], header["pixels"]
        return Probed(
            None if seconds is None else float(seconds),
            None if codec is None else str(codec)[:40],
            number("channels"),
            number("rate"),
            None if pixels is None else PixelSize(*map(int, pixels)),
        )
    except (KeyError, TypeError, ValueError):
        return Probed()
