"""The declaration of `gateway_run`, written for the models that read it: the functions that scripts have."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.fact_words import counted
from gateway.core.own_names import RUN_TOOL
from gateway.core.tokens import text_tokens
from gateway.core.tools.signatures import one_line
from gateway.routing.code_mode.script_tools import ScriptTool

MOST_CODE = 100_000
"""Characters of a script."""
_UPSTREAMS_NAMED = 40
_SHORTEST = 400
"""Characters of the description that even a host with a low limit leaves for signatures."""

_ABOUT = (
    "Runs a Python script that calls tools as functions, and returns only what it prints and shows. Use it for several "
    "calls whose results you need not all see. No files, no network; json, re, math, datetime and asyncio can be "
    "imported.\n"
    "A result is the tool's data (dict, list) or its text; an image, sound or file is a Media object with type, "
    "mime_type, size, width, height, name, handle: give it to other tools as an argument. Several parts are a list; "
    "media(result) returns its Media. A failed tool raises RuntimeError.\n"
    "show(*values) puts media or data into the answer; open_media(handle) returns Media you know; read_text(m) and "
    "read_bytes(m) read small ones. Calls block; to run them at once: await asyncio.gather(f(1), f(2)), then await "
    "every call.\n"
)

RUN: dict[str, Any] = {
    "name": RUN_TOOL,
    "title": "Run a script",
    "description": _ABOUT,
    "inputSchema": {
        "type": "object",
        "properties": {
            "code": {"type": "string", "maxLength": MOST_CODE, "description": "The script, in Python."},
        },
        "required": ["code"],
        "additionalProperties": False,
    },
    "annotations": {
        "title": "Run a script",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}


def declared(tools: Mapping[str, ScriptTool], tokens: int, longest: int | None, *, may_change: bool) -> dict[str, Any]:
    """Return the declaration with the signatures of these tools, as far as they fit.

    `tokens` bounds the signatures; `longest` is the number of characters of a description that the host passes on.
    `may_change`: some of the tools do not say that they only read.
    """
    annotations = RUN["annotations"]
    if not may_change:
        annotations = {**annotations, "readOnlyHint": True, "destructiveHint": False}
    room = None if longest is None else max(_SHORTEST, longest - len(_ABOUT))
    return {**RUN, "description": _ABOUT + _functions(tools.values(), tokens, room), "annotations": annotations}


def signatures(tools: Iterable[ScriptTool]) -> str:
    """Return the signatures of functions, one below the other, each with what it does."""
    return "\n".join(_signature(tool) for tool in tools)


def _functions(tools: Iterable[ScriptTool], tokens: int, room: int | None) -> str:
    listed = list(tools)
    if not listed:
        return "There are no tools that scripts may call now."
    full = f"Functions (? marks optional arguments):\n{signatures(listed)}"
    if _fits(full, tokens, room):
        return full
    short = "Functions (? marks optional arguments):\n" + "\n".join(tool.signature for tool in listed)
    return short if _fits(short, tokens, room) else _overview(listed)


def _fits(text: str, tokens: int, room: int | None) -> bool:
    return (room is None or len(text) <= room) and text_tokens(text) <= tokens


def _overview(tools: Sequence[ScriptTool]) -> str:
    counts = Counter(tool.function.partition("__")[0] for tool in tools)
    named = ", ".join(f"{name}__* ({count})" for name, count in list(counts.items())[:_UPSTREAMS_NAMED])
    words = f"There are {counted(len(tools), 'function')}: {named}."
    return f"{words} print(find_tools('a few words')) prints the signatures of the best ones: run that first."


def _signature(tool: ScriptTool) -> str:
    words = one_line(tool.declared)
    return f"{tool.signature}\n  {words}" if words else tool.signature
