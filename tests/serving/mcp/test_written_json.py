"""Answers as bytes: whole JSON whatever its pieces, on one line whoever splits it."""

import json
from typing import Any

import pytest
from mcp_types import ErrorData, JSONRPCNotification, JSONRPCResponse
from pydantic_core import to_json

from gateway.serving.mcp.written_json import (
    WrittenArray,
    WrittenArrays,
    error_pieces,
    event_pieces,
    message_pieces,
    response_pieces,
)

TOOLS: list[dict[str, Any]] = [{"name": "a", "description": "ü"}, {"name": "b", "x": None}]


def written(items: list[Any]) -> WrittenArray:
    return WrittenArray(items, to_json(items))


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": [], "x": None},
        {"tools": written(TOOLS)},
        {"tools": written([])},
        {"ttlMs": 5, "tools": written(TOOLS), "_meta": {"a": "ü"}},
        {"tools": written(TOOLS), "others": written([1])},
    ],
)
@pytest.mark.parametrize("request_id", [1, "", "}", "half \ud83d"])
def test_pieces_are_one_message(request_id: str | int, result: dict[str, Any]) -> None:
    whole = {"jsonrpc": "2.0", "id": request_id, "result": result}
    assert json.loads(b"".join(response_pieces(request_id, result))) == whole
    if request_id != "half \ud83d":
        message = JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result)
        assert json.loads(b"".join(message_pieces(message))) == whole


def test_an_array_goes_as_it_was_written() -> None:
    array = written(TOOLS)
    assert array.json in response_pieces(1, {"tools": array})
    assert json.loads(to_json({"tools": array})) == {"tools": TOOLS}, "whoever does not know it writes it all the same"


def test_an_error_has_no_data_unless_it_has_some() -> None:
    assert json.loads(error_pieces(1, ErrorData(code=5, message="m"))[0])["error"] == {"code": 5, "message": "m"}
    told = json.loads(error_pieces(1, ErrorData(code=5, message="m", data=[None]))[0])["error"]
    assert told == {"code": 5, "message": "m", "data": [None]}


def test_an_event_is_on_one_line_for_every_reader() -> None:
    params = {"data": "a\u0085b\u2028c\u2029d\r\ne\x0b\x0c\x1c"}
    message = JSONRPCNotification(jsonrpc="2.0", method="x", params=params)
    event = b"".join(event_pieces(message_pieces(message), "7")).decode()
    head, kind, data, *rest = event.splitlines()
    assert (head, kind, rest) == ("id: 7", "event: message", [""])
    assert json.loads(data.removeprefix("data: "))["params"] == params


def test_arrays_are_remembered_by_their_items_and_form() -> None:
    arrays = WrittenArrays()
    kept = arrays.keep("modern", TOOLS, [*TOOLS, 1])
    assert kept == [*TOOLS, 1]
    assert arrays.get("modern", list(TOOLS)) is kept, "another list of the same tools"
    assert arrays.get("handshake", TOOLS) is None
    assert arrays.get("modern", TOOLS[:1]) is None
    assert arrays.get("modern", [dict(tool) for tool in TOOLS]) is None
    arrays.forget()
    assert arrays.get("modern", TOOLS) is None


def test_only_some_arrays_are_remembered() -> None:
    arrays = WrittenArrays()
    lists = [[{"n": number}] for number in range(100)]
    for items in lists:
        arrays.keep("modern", items, items)
    assert sum(arrays.get("modern", items) is not None for items in lists) < 20
    assert arrays.get("modern", lists[-1]) is not None
