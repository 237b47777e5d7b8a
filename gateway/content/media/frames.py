"""The protocol between the gateway and a media worker: frames of a JSON header and a body of bytes.

    frame   length of the header (4 bytes), length of the body (8 bytes), header (UTF-8 JSON), body
    worker  READY or {"error": reason} once, when it starts
    job     {"operation", "media_type", "options", "seconds"} and the content; see `gateway.content.media.operations`
    answer  the operation's header and body; or {"error": reason, "remedy": what to do about it, "last":
            true if the worker ends}

Only JSON and lengths are exchanged, so a compromised worker cannot make the gateway run anything.
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
    """One job. `media_type` is the actual type of the content; the worker's alarm goes off after `seconds`."""

    operation: str
    content: bytes
    media_type: str
    options: Mapping[str, Any]
    """Other parameters of the operation, as JSON; see `packed`."""
    seconds: float


def pack(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Encode a frame up to its body."""
    encoded = json.dumps(header).encode()
    return PREFIX.pack(len(encoded), len(body)) + encoded


def pack_job(job: WorkerJob) -> bytes:
    """Encode a job's frame up to its content."""
    header = {key: value for key, value in job._asdict().items() if key != "content"}
    return pack(header, job.content)


def unpack_job(header: Mapping[str, Any], body: bytes) -> WorkerJob:
    """Decode the job that `pack_job` encoded."""
    return WorkerJob(content=body, **header)


def packed(value: ImageTarget | AudioTarget | Crop | None) -> dict[str, Any] | None:
    """Return a target or a crop as JSON."""
    return None if value is None else asdict(value)


def unpack_image_target(value: Mapping[str, Any]) -> ImageTarget:
    """Decode a target that `packed` encoded."""
    return ImageTarget(**_with_types(value))


def audio_target(value: Mapping[str, Any]) -> AudioTarget:
    """Decode a target that `packed` encoded."""
    return AudioTarget(**_with_types(value))


def _with_types(value: Mapping[str, Any]) -> dict[str, Any]:
    return {**value, "types": tuple(value["types"])}


def crop(value: Mapping[str, Any] | None) -> Crop | None:
    """Decode a crop that `packed` encoded."""
    return None if value is None else Crop(**value)


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """Read the next frame from a blocking stream; None if it has ended, even in the middle of a frame."""
    prefix = stream.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    header_size, body_size = PREFIX.unpack(prefix)
    header, body = stream.read(header_size), stream.read(body_size)
    if len(header) + len(body) < header_size + body_size:
        return None
    return json.loads(header), body
