"""The protocol between the gateway and the process of a script: frames of JSON after their length in 4 bytes.

    gateway  {"code", "limits": ScriptLimits, "tools": [names], "refused": {name: why}} once
    process  {"printed": text}, {"at": line} before a value is read there, and
             {"call": number, "name", "args": [...], "kwargs": {...}} for each call of a function
    gateway  {"call": number, "value": as `pack_value` makes it} or {"call": number, "error": [type, words]}
    process  {"done": text of the last line's value or null} or {"failed": {"words", "line", "code"}} or
             {"broken": why no script can run}

Calls are answered in any order. Only JSON of bounded size is exchanged, and media as
their handles, so a process that a script has taken over can do no more than call the functions of that script.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO, NamedTuple

import pybase64

from gateway.core.fact_words import counted
from gateway.core.model.json_values import is_list
from gateway.sandbox.media import Media

LENGTH = struct.Struct(">I")
"""The length before a message."""
LARGEST = 128 * 1024 * 1024
"""Maximum bytes of a message of the process."""
MOST_ARGUMENTS = 16 * 1024 * 1024
"""Maximum bytes of the arguments of one call, as of a request from a host."""
MOST_SENT = 256 * 1024 * 1024
"""Maximum bytes of all messages of the process."""

SLEEP = "system.sleep"
"""The name of a call that returns after some seconds."""


class ScriptLimits(NamedTuple):
    """What one script may use. `run_time` in seconds, sizes in bytes."""

    run_time: float
    memory: int
    max_calls: int
    max_text: int
    max_shown: int


def too_many_calls(most: int) -> str:
    """Return what a script is told whose calls are one more than it may make."""
    return f"a script may make at most {counted(most, 'tool call')}"


class TooLarge(Exception):
    """A message is larger than any may be."""


def pack(message: Mapping[str, Any], largest: int = 0xFFFFFFFF) -> bytes:
    """Return a message as it is sent.

    Raises:
        TooLarge: it has more than `largest` bytes.
    """
    encoded = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if len(encoded) > largest:
        raise TooLarge
    return LENGTH.pack(len(encoded)) + encoded


def read_message(stream: BinaryIO) -> Any:
    """Read the next message from a blocking stream; None if it has ended, even in the middle of one."""
    prefix = stream.read(LENGTH.size)
    if len(prefix) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(prefix)
    encoded = stream.read(size)
    return json.loads(encoded) if len(encoded) == size else None


def pack_value(value: Any) -> dict[str, Any]:
    """Return what a function returns as a message has it: data, text, media or bytes, or a list of these."""
    if is_list(value) and any(isinstance(each, Media) for each in value):
        return {"parts": [pack_value(each) for each in value]}
    if isinstance(value, Media):
        return {"media": asdict(value)}
    if isinstance(value, bytes):
        return {"bytes": pybase64.b64encode_as_string(value)}
    return {"data": value}


def unpack_value(packed: Mapping[str, Any]) -> Any:
    """Return the value that `pack_value` packed."""
    if "parts" in packed:
        return [unpack_value(each) for each in packed["parts"]]
    if "media" in packed:
        return Media(**packed["media"])
    if "bytes" in packed:
        return pybase64.b64decode(packed["bytes"])
    return packed["data"]
