"""The operations of a worker: for each name, a function from a job to the header and body of its answer.

    operation  options                   answer
    fit        target, crop              {"media_type", "pixels", "original", "frames"} and base64
    read       max_pages, max_chars      {} and {"pages", "texts", "title"} as JSON
    render     page (from 1), target     as for fit, or {"failed": reason} if only this page has a problem
    convert    target                    {"media_type", "seconds", "original"} and base64
    probe                                {"seconds", "codec", "channels", "rate", "pixels"}
    query      expression, max_chars     {} and the text
    outline                              {} and a list of texts as JSON

Each loads what it needs on first use: most workers never see a PDF or a sound.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pybase64

from gateway.content.media import frames, images

Answer: TypeAlias = tuple[dict[str, Any], bytes]


def _fit(job: frames.WorkerJob, max_pixels: int) -> Answer:
    target, crop = frames.unpack_image_target(job.options["target"]), frames.crop(job.options["crop"])
    return _picture(images.fit_image(job.content, job.media_type, target, crop, max_pixels))


def _picture(picture: images.DecodedImage) -> Answer:
    header = {key: value for key, value in picture._asdict().items() if key != "content"}
    return header, pybase64.b64encode(picture.content)


def _read(job: frames.WorkerJob, max_pixels: int) -> Answer:
    from gateway.content.media import documents

    read = documents.read_document(job.content, job.options["max_pages"], job.options["max_chars"])
    return {}, json.dumps(read._asdict()).encode()


def _render(job: frames.WorkerJob, max_pixels: int) -> Answer:
    from gateway.content.media import documents

    target = frames.unpack_image_target(job.options["target"])
    try:
        return _picture(documents.render(job.content, job.options["page"], target, max_pixels))
    except documents.PageError as error:
        return {"failed": error.message}, b""
    except MemoryError:
        return {"failed": "it needs more memory than a media worker may use", "last": True}, b""


def _convert(job: frames.WorkerJob, max_pixels: int) -> Answer:
    from gateway.content.media import convert_sound

    sound = convert_sound.convert(job.content, job.media_type, frames.audio_target(job.options["target"]))
    header = {"media_type": sound.media_type, "seconds": sound.seconds, "original": sound.original}
    return header, pybase64.b64encode(sound.content)


def _probe(job: frames.WorkerJob, max_pixels: int) -> Answer:
    from gateway.content.media import probe_media

    return probe_media.probe(job.content, job.media_type)._asdict(), b""


def _query(job: frames.WorkerJob, max_pixels: int) -> Answer:
    from gateway.content.media.query_json import query_json

    found = query_json(job.content, job.options["expression"], job.options["max_chars"])
    return {}, found.encode("utf-8", "replace")


def _outline(job: frames.WorkerJob, max_pixels: int) -> Answer:
    from gateway.core.results.json_outline import json_outlines

    return {}, json.dumps(json_outlines(job.content.decode("utf-8", "replace"))).encode()


OPERATIONS: Mapping[str, Callable[[frames.WorkerJob, int], Answer]] = {
    "fit": _fit,
    "read": _read,
    "render": _render,
    "convert": _convert,
    "probe": _probe,
    "query": _query,
    "outline": _outline,
}
