"""What the gateway and a media worker say to each other: frames of a JSON header and a body of bytes.

    frame   length of the header (4 bytes), length of the body (8 bytes), header (UTF-8 JSON), body
    worker  READY or {"error": reason} once, at its start
    job     {"operation", "media_type", "options", "seconds"} and the content; see `gateway.content.media.operations`
    answer  what the operation answers, a header and a body; or {"error": reason, "remedy": what to do about it, "last":
            true when the worker ends}

JSON and lengths only, so that a worker taken over by what it decodes cannot make the gateway run anything.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO, NamedTuple

from gateway.core.model.effects import AudioTarget, Crop, ImageTarget

PREFIX = struct.Struct(">IQ")
"""The two lengths before a header."""

LARGEST_HEADER = 64 * 1024
LARGEST_BODY = 1024 * 1024 * 1024
READY: Mapping[str, Any] = {"ready": True}


class WorkerJob(NamedTuple):
    """One piece of work. `media_type` is what the content really is; the worker's alarm is at `seconds`."""

    operation: str
    content: bytes
    media_type: str
    options: Mapping[str, Any]
    """What else the operation needs, as JSON; `packed` makes it of what is below."""
    seconds: float


def pack(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Everything of a frame before its body."""
    encoded = json.dumps(header).encode()
    return PREFIX.pack(len(encoded), len(body)) + encoded


def pack_job(job: WorkerJob) -> bytes:
    """Everything of a job's frame before its content."""
    header = {key: value for key, value in job._asdict().items() if key != "content"}
    return pack(header, job.content)


def unpack_job(header: Mapping[str, Any], body: bytes) -> WorkerJob:
    """The job that `pack_job` packed."""
    return WorkerJob(content=body, **header)


def packed(value: ImageTarget | AudioTarget | Crop | None) -> dict[str, Any] | None:
    """A target or a crop as JSON."""
    return None if value is None else asdict(value)


def unpack_image_target(value: Mapping[str, Any]) -> ImageTarget:
    """The target that `packed` made JSON of."""
    return ImageTarget(**_with_types(value))


def audio_target(value: Mapping[str, Any]) -> AudioTarget:
    """The target that `packed` made JSON of."""
    return AudioTarget(**_with_types(value))


def _with_types(value: Mapping[str, Any]) -> dict[str, Any]:
    return {**value, "types": tuple(value["types"])}


def crop(value: Mapping[str, Any] | None) -> Crop | None:
    """The crop that `packed` made JSON of."""
    return None if value is None else Crop(**value)


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next frame from a blocking stream; None when it has ended, within a frame as well."""
    prefix = stream.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    header_size, body_size = PREFIX.unpack(prefix)
    header, body = stream.read(header_size), stream.read(body_size)
    if len(header) + len(body) < header_size + body_size:
        return None
    return json.loads(header), body
