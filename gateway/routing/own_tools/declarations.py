"""Declarations of the gateway's own tools, written for the models that read them."""

from typing import Any

from gateway.core.own_names import READ_TOOL, VIEW_TOOL

DEFAULT_LIMIT = 20_000
"""Default number of characters that one call of `gateway_read` returns."""

_SAFE = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_HANDLE = 'The handle as it was named, for example in [image 1: image/png, 4000x3000; ... handle "..."].'

VIEW: dict[str, Any] = {
    "name": VIEW_TOOL,
    "title": "View an image or a page",
    "description": (
        "Shows an image, or a page of a PDF document, that another tool returned and that was left out, scaled down or "
        "named by a handle. Give the handle alone for the whole image or the first page, `page` for another page, "
        "`size` for a smaller image, or `crop` to look at a part of it closely: small text becomes readable that way. "
        "The answer says how its coordinates map back to the original."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": _HANDLE},
            "page": {
                "type": "integer",
                "minimum": 1,
                "description": "Which page of a document; the first is 1.",
            },
            "size": {
                "type": "integer",
                "minimum": 1,
                "description": "The longer edge in pixels, at most; never larger than the original.",
            },
            "crop": {
                "type": "object",
                "description": "The part to show, in pixels of the original image (of a page: as it is shown "
                "whole), from its upper left corner.",
                "properties": {
                    "left": {"type": "integer", "minimum": 0},
                    "top": {"type": "integer", "minimum": 0},
                    "width": {"type": "integer", "minimum": 1},
                    "height": {"type": "integer", "minimum": 1},
                },
                "required": ["left", "top", "width", "height"],
                "additionalProperties": False,
            },
        },
        "required": ["handle"],
        "additionalProperties": False,
    },
    "annotations": {"title": "View an image or a page", **_SAFE},
}

READ: dict[str, Any] = {
    "name": READ_TOOL,
    "title": "Read text piece by piece",
    "description": (
        "Reads a text that another tool returned and that was cut or named by a handle, or a resource of any "
        "connected server by its uri; of a PDF document its text. Give either `handle` or `uri`. The last line of the "
        "answer says which characters were shown of how many, and the offset at which to read on. With `search`, the "
        "answer is each place where these words stand, with its offset; with `query`, a part of a JSON text."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": _HANDLE},
            "uri": {"type": "string", "description": "The uri of a resource, as a link or a resource list names it."},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "Where to begin, in characters from the start.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "default": DEFAULT_LIMIT,
                "description": "How many characters to show, at most.",
            },
            "search": {
                "type": "string",
                "description": "Words to look for from `offset` on, upper and lower case alike.",
            },
            "query": {
                "type": "string",
                "description": "Of a JSON text: the part to show, in JMESPath, such as "
                "items[?price > `10`].{name: name, price: price}. Rows are shown as a table.",
            },
        },
        "additionalProperties": False,
    },
    "annotations": {"title": "Read text piece by piece", **_SAFE},
}

TOOLS: tuple[dict[str, Any], ...] = (VIEW, READ)
