"""Answers as the bytes that hosts get: JSON that is written once, and arrays that are written once for many answers."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp_types import ErrorData, JSONRPCMessage, JSONRPCResponse
from pydantic_core import to_json

from gateway.upstream.transports.messages import write_fields, write_message

_LINE_ENDS = ("\u0085", "\u2028", "\u2029")
"""Characters that some hosts take for the end of a line, but that JSON does not escape."""

_ESCAPES = tuple((end.encode(), f"\\u{ord(end):04x}".encode()) for end in _LINE_ENDS)
_KEPT = 8


class WrittenArray(list[Any]):
    """An array that knows its JSON. It is an array like any other to a writer that does not know this class."""

    def __init__(self, items: Iterable[Any], json: bytes) -> None:
        super().__init__(items)
        self.json = json


class WrittenArrays:
    """Remembers arrays by the identity of their items, so that equal answers need not be written again.

    The items must not be changed any more.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], tuple[Sequence[Any], WrittenArray]] = OrderedDict()

    def get(self, form: str, items: Sequence[Any]) -> WrittenArray | None:
        """Return what has been written of exactly these items in this form."""
        key = _key(form, items)
        if (found := self._kept.get(key)) is None:
            return None
        self._kept.move_to_end(key)
        return found[1]

    def keep(self, form: str, items: Sequence[Any], finished: Sequence[Any]) -> WrittenArray:
        """Write `finished`, the form for hosts of these items, and remember it."""
        written = WrittenArray(finished, to_json(finished))
        # The items are kept, too, so that no others can get their ids.
        self._kept[_key(form, items)] = items, written
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return written

    def forget(self) -> None:
        """Drop everything: the lists have changed."""
        self._kept.clear()


def _key(form: str, items: Sequence[Any]) -> tuple[object, ...]:
    return (form, *map(id, items))


def response_pieces(request_id: str | int, result: Mapping[str, Any]) -> list[bytes]:
    """Write a response as JSON on one line, in pieces. Never raises; see `write_fields`."""
    arrays = _written_in(result)
    if not arrays:
        return [write_fields({"jsonrpc": "2.0", "id": request_id, "result": result})]
    others = {key: value for key, value in result.items() if key not in arrays}
    pieces = [
        write_fields({"jsonrpc": "2.0", "id": request_id}).removesuffix(b"}") + b',"result":',
        write_fields(others).removesuffix(b"}"),
    ]
    for key, array in arrays.items():
        comma = b"" if pieces[-1] == b"{" else b","
        pieces += [comma + to_json(key) + b":", array.json]
    return [*pieces, b"}}"]


def _written_in(result: Mapping[str, Any]) -> dict[str, WrittenArray]:
    return {key: value for key, value in result.items() if isinstance(value, WrittenArray)}


def error_pieces(request_id: str | int, error: ErrorData) -> list[bytes]:
    """Write an error response as JSON on one line. Never raises."""
    known = {"code": error.code, "message": error.message, "data": error.data}
    told = {key: value for key, value in known.items() if value is not None}
    return [write_fields({"jsonrpc": "2.0", "id": request_id, "error": told})]


def message_pieces(message: JSONRPCMessage) -> list[bytes]:
    """Write a message as JSON on one line, in pieces. Never raises."""
    if isinstance(message, JSONRPCResponse) and any(
        isinstance(value, WrittenArray) for value in message.result.values()
    ):
        return response_pieces(message.id, message.result)
    return [write_message(message)]


def event_pieces(message: list[bytes], event_id: str | None = None) -> list[bytes]:
    """Return an event of an event stream with a message, which is given as its JSON in pieces."""
    head = b"" if event_id is None else b"id: " + event_id.encode() + b"\r\n"
    return [head + b"event: message\r\ndata: ", *map(_on_one_line, message), b"\r\n\r\n"]


def _on_one_line(json: bytes) -> bytes:
    if json.isascii():
        return json
    for end, escape in _ESCAPES:
        json = json.replace(end, escape)
    return json
