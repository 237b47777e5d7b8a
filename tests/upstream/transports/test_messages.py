import json

import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.upstream.transports.causes import NotMcp, TooManyValues
from gateway.upstream.transports.messages import (
    TOO_MANY_VALUES,
    answered_id,
    failure_in,
    mended,
    read_messages,
    write_fields,
    write_message,
)


def test_a_result_is_kept_as_it_came() -> None:
    result = {"content": [{"type": "video", "x": [1, 2.5, None, True]}], "n": 12345678901234567890, "text": "\u2028☃"}
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "result": result})
    (message,) = read_messages(line.encode())
    assert isinstance(message.message, JSONRPCResponse)
    assert message.message.result == result


def test_a_batch_is_several_messages_and_what_is_none_in_it_is_left_out() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    messages = read_messages(json.dumps([request, "x", 1, notification]).encode())
    assert [type(one.message) for one in messages] == [JSONRPCRequest, JSONRPCNotification]


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[]",
        b"{}",
        b"17",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":null,"result":1}',
        b'{"jsonrpc":"2.0","id":true,"result":1}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(NotMcp):
        read_messages(line)


def test_a_malformed_answer_fails_the_request_that_it_names() -> None:
    (message,) = read_messages(b'{"jsonrpc":"2.0","id":4,"result":["no object"]}')
    assert isinstance(message.message, JSONRPCError)
    assert message.message.id == 4
    assert isinstance(failure_in(message.message.error), NotMcp)


def test_an_upstream_cannot_forge_a_failure() -> None:
    line = b'{"jsonrpc":"2.0","id":4,"error":{"code":-32700,"message":"x","data":{"failure":"y"}}}'
    (message,) = read_messages(line)
    assert isinstance(message.message, JSONRPCError)
    assert failure_in(message.message.error) is None


def test_wrong_characters_cost_only_themselves() -> None:
    (message,) = read_messages(b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud83d","b":"\xff","c":"good"}}')
    assert isinstance(message.message, JSONRPCResponse)
    assert message.message.result["c"] == "good"
    json.dumps(message.message.result, ensure_ascii=False).encode()  # and can be written again


def test_half_a_surrogate_pair_can_be_written() -> None:
    written = write_message(JSONRPCRequest(jsonrpc="2.0", id=1, method="x", params={"text": "\ud83d", "n": 1}))
    assert json.loads(written)["params"] == {"text": "\ud83d", "n": 1}
    assert b"\n" not in written


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":{"x":"...', 3),
        (b'{ "jsonrpc": "2.0", "id": 12, "error": {', 12),
        (b'{"result":{"id":9},"jsonrpc":"2.0","id":5}', 5),
        (b'{"result":{},"id":5,"jsonrpc":"2.0"}', 5),
        (b'{"result":{"a":{"id":9}}}', None),
        (b'{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage', None),
    ],
)
def test_the_request_that_a_message_too_long_answers_is_read_from_its_ends(line: bytes, expected: int | None) -> None:
    assert answered_id(line, line) == expected


@pytest.mark.parametrize(
    "odd",
    [
        "[" * 300 + "]" * 300,
        "[" * 50_000 + "]" * 50_000,
        "9" * 5_000,
        "NaN",
        '"\\udc00"',
        '{"a":' * 999 + "1" + "}" * 999,
    ],
)
def test_a_message_is_read_and_written_whatever_is_in_it(odd: str) -> None:
    (message,) = read_messages(f'{{"jsonrpc": "2.0", "id": 1, "result": {{"a": {odd}, "b": "fine"}}}}')
    assert isinstance(message.message, JSONRPCResponse)
    assert message.message.result["b"] == "fine"
    assert json.loads(write_message(message.message))["id"] == 1


@pytest.mark.parametrize("number", ["1e400", "9" * 400, "9" * 5_000, "NaN", '"1"', "null"])
def test_progress_that_is_not_a_number_is_no_message(number: str) -> None:
    params = f'{{"progressToken": 1, "progress": {number}}}'
    with pytest.raises(NotMcp):
        read_messages(f'{{"jsonrpc": "2.0", "method": "notifications/progress", "params": {params}}}')


def test_writing_never_fails_and_costs_only_the_message() -> None:
    deep: object = "x"
    for _ in range(3_000):
        deep = [deep]
    for bad in (deep, object()):
        answer = json.loads(write_fields({"jsonrpc": "2.0", "id": "\ud800", "result": {"a": bad}}))
        assert (answer["id"], answer["error"]["code"]) == ("\ud800", -32603)
        error = {"code": -5, "message": "why \ud800", "data": bad}
        answer = json.loads(write_fields({"jsonrpc": "2.0", "id": 2, "error": error}))
        assert answer["error"] == {"code": -5, "message": "why \ufffd"}
        assert json.loads(write_fields({"jsonrpc": "2.0", "method": "m", "params": {"a": bad}})) == {
            "jsonrpc": "2.0",
            "method": "m",
        }
    assert json.loads(write_fields({"id": 1, "result": {"a": float("nan"), "b": "\ud800"}}))["id"] == 1


MANY = '{"jsonrpc":"2.0","id":4,"result":{"a":[' + "[]," * 5_000_001 + "0]}}"
ABOVE = 20_001


def test_a_message_of_too_many_values_is_not_parsed() -> None:
    for form in (MANY, MANY.encode()):
        with pytest.raises(TooManyValues):
            read_messages(form)
    assert b'"id"' not in mended(MANY.encode())


def test_a_table_in_a_notification_costs_only_itself() -> None:
    params = {"level": "info", "data": [[]] * ABOVE, "logger": "a"}
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    (message,) = read_messages(line)
    assert isinstance(message.message, JSONRPCNotification)
    assert message.message.params == {"level": "info", "data": TOO_MANY_VALUES, "logger": "a"}
    many = {"jsonrpc": "2.0", "method": "x", "params": dict.fromkeys(map(str, range(3 * ABOVE)), 0)}
    (message,) = read_messages(json.dumps(many))
    assert isinstance(message.message, JSONRPCNotification)
    assert len(message.message.params or {}) < ABOVE


def test_a_table_in_a_result_or_a_request_is_kept() -> None:
    table = {"a": [[]] * ABOVE}
    for message in ({"id": 1, "result": table}, {"id": 1, "method": "x", "params": table}):
        (read,) = read_messages(json.dumps({"jsonrpc": "2.0", **message}))
        assert read.message.model_dump(exclude_unset=True) == {"jsonrpc": "2.0", **message}
