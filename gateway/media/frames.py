"""What the gateway and a media worker say to each other: frames of a JSON header and a body of bytes.

    frame   length of the header (4 bytes), length of the body (8 bytes), header (UTF-8 JSON), body
    worker  READY or {"error": reason} once, at its start
    job     {"media_type", "types", "max_edge", "max_bytes", "crop", "seconds"} and the image
    answer  {"media_type", "pixels", "original"} and base64, or {"error": reason, "last": true when the worker ends}

JSON and lengths only, so that a worker taken over by what it decodes cannot make the gateway run anything.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from gateway.core.model.effects import Crop, ImageTarget

PREFIX = struct.Struct(">IQ")
"""The two lengths before a header."""

LARGEST_HEADER = 64 * 1024
LARGEST_BODY = 1024 * 1024 * 1024
READY: Mapping[str, Any] = {"ready": True}


class Job(NamedTuple):
    """One image and what it has to become. `media_type` is what it really is; the worker's alarm is at `seconds`."""

    content: bytes
    media_type: str
    target: ImageTarget
    crop: Crop | None
    seconds: float


def pack(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Everything of a frame before its body."""
    encoded = json.dumps(header).encode()
    return PREFIX.pack(len(encoded), len(body)) + encoded


def pack_job(job: Job) -> bytes:
    """Everything of a job's frame before its content."""
    crop = job.crop and [job.crop.left, job.crop.top, job.crop.width, job.crop.height]
    target = job.target
    header = {
        "media_type": job.media_type,
        "types": target.types,
        "max_edge": target.max_edge,
        "max_bytes": target.max_bytes,
        "crop": crop,
        "seconds": job.seconds,
    }
    return pack(header, job.content)


def unpack_job(header: Mapping[str, Any], body: bytes) -> Job:
    """The job that `pack_job` packed."""
    target = ImageTarget(tuple(header["types"]), header["max_edge"], header["max_bytes"])
    crop = Crop(*header["crop"]) if header["crop"] else None
    return Job(body, header["media_type"], target, crop, header["seconds"])


def read(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next frame from a blocking stream; None when it has ended, within a frame as well."""
    prefix = stream.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    header_size, body_size = PREFIX.unpack(prefix)
    header, body = stream.read(header_size), stream.read(body_size)
    if len(header) + len(body) < header_size + body_size:
        return None
    return json.loads(header), body
