"""A media worker: one process that decodes hostile content, one piece at a time, until its stdin ends.

    python -m gateway.content.media.worker MEMORY_BYTES MAX_PIXELS

The limits hold even if the gateway has died: the kernel limits memory, an alarm ends a job by killing the process even
while a C library blocks the interpreter, and stdin ends when the gateway is gone. Only what a job needs is imported:
the start of a worker is part of the time for the first picture.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, TypeAlias

from gateway.content.media import frames
from gateway.errors import MediaError
from gateway.system.private_stdio import private_stdio

_NICENESS = 2
"""How far workers stand back for the gateway, whose other calls need little time, but at once."""

Operations: TypeAlias = "Mapping[str, Callable[[frames.WorkerJob, int], tuple[dict[str, Any], bytes]]]"


def main(memory_bytes: int, max_pixels: int) -> None:
    """Announce readiness, then answer jobs until stdin ends."""
    jobs, answers = private_stdio()
    # Ctrl-C in a terminal reaches the whole process group; ending the workers is the gateway's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory(memory_bytes)
    if sys.platform != "win32":
        os.nice(_NICENESS)
    try:
        from gateway.content.media import images
        from gateway.content.media.operations import OPERATIONS
    except (ImportError, MemoryError) as error:
        _write(answers, {"error": f"{type(error).__name__}: {error}"})
        return
    images.limit_pixels(max_pixels)
    _write(answers, frames.READY)
    while _serve_one(jobs, answers, OPERATIONS, max_pixels):
        pass


def _serve_one(jobs: BinaryIO, answers: BinaryIO, operations: Operations, max_pixels: int) -> bool:
    """Answer the next job. Return False if there is none, or if this was the last."""
    frame = frames.read_frame(jobs)
    if frame is None:
        return False
    job = frames.unpack_job(*frame)
    _kill_oneself_after(job.seconds)
    header, body = _answer(operations, job, max_pixels)
    _write(answers, header, body)
    _kill_oneself_after(0)
    return not header.get("last")


def _answer(operations: Operations, job: frames.WorkerJob, max_pixels: int) -> tuple[dict[str, Any], bytes]:
    try:
        return operations[job.operation](job, max_pixels)
    except MediaError as error:
        return {"error": error.message, "remedy": error.remedy}, b""
    except MemoryError:
        # The remaining memory is fragmented: the next job gets a fresh process.
        return {"error": "it needs more memory than a media worker may use", "last": True}, b""
    except Exception as error:  # Decoders raise anything on hostile bytes; that must cost this one job only.
        return {"error": f"it cannot be decoded: {_one_line(error)}"}, b""


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return "".join(character if character.isprintable() else "?" for character in text)[:200]


def _write(stream: BinaryIO, header: Any, body: bytes = b"") -> None:
    stream.write(frames.pack(header, body))
    stream.write(body)
    stream.flush()


def _limit_memory(memory_bytes: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    limits = [("RLIMIT_AS", memory_bytes), ("RLIMIT_DATA", memory_bytes), ("RLIMIT_CORE", 0)]
    for name, limit in limits:
        try:
            resource.setrlimit(getattr(resource, name), (limit, limit))
        except (AttributeError, ValueError, OSError):
            # macOS has some of these names but refuses to set them; the time limit still holds there.
            continue


def _kill_oneself_after(seconds: float) -> None:
    """Make the kernel end this process after `seconds` (0 cancels), in case the gateway itself was killed."""
    if sys.platform == "win32":
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
