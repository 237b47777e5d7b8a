"""What is said at the door, and what strangers and fools get."""

import json
from dataclasses import replace

import anyio
import pytest

from gateway.errors import ConfigError, GatewayError
from gateway.serving.control.client import ControlUnanswered
from gateway.serving.control.endpoint import Endpoint
from gateway.serving.control.protocol import MAX_REPLY_BYTES, MAX_REQUEST_BYTES
from gateway.serving.http import WrongTokens

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_a_question_is_answered(door, asked, kind):
    async def status():
        return {"name": "caf\u00e9 \x1b[2J", "many": "x" * 300_000}

    async with door(kind, status=status) as record:
        assert await asked(record, "status") == await status()
        assert await asked(record, "reload") == {}


async def test_the_loopback_wants_its_token(door, asked):
    async with door("tcp") as record:
        for token in (None, "", "guess"):
            stranger = replace(record, endpoint=replace(record.endpoint, token=token))
            with pytest.raises(GatewayError, match="the token is wrong"):
                await asked(stranger, "status")


async def test_stop_is_answered_before_it_is_done(door, asked):
    stopped = anyio.Event()
    async with door(stop=stopped.set) as record:
        assert await asked(record, "stop") == {"grace": 0.0}
        await stopped.wait()


async def test_what_went_wrong_is_said_and_costs_the_next_caller_nothing(door, asked, caplog):
    async def refuse():
        raise ConfigError("is not TOML", where="x.toml")

    async def fail():
        raise KeyError("secret")

    async def huge():
        return {"x": "y" * MAX_REPLY_BYTES}

    async with door(status=fail, reload=refuse) as record:
        with pytest.raises(GatewayError, match=r"^x.toml: is not TOML$"):
            await asked(record, "reload")
        with pytest.raises(GatewayError, match="KeyError") as told:
            await asked(record, "status")
        assert "secret" not in str(told.value)
    async with door(status=huge) as record:
        with pytest.raises(GatewayError, match="too long"):
            await asked(record, "status")


@pytest.mark.parametrize(
    "line", [b"{\n", b"[]\n", b'"status"\n', b"\xff\n", b"[" * 3_000 + b"\n", b'{"command": "x"}\n']
)
async def test_what_cannot_be_understood_is_refused(door, said, line):
    async with door() as record:
        assert json.loads(await said(record, line))["ok"] is False


async def test_too_long_a_question_is_not_listened_to(door, said, asked):
    async with door() as record:
        assert await said(record, b"x" * (4 * MAX_REQUEST_BYTES)) == b""
        assert await asked(record, "status") == {}


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_callers_that_say_nothing_keep_out_nobody(door, asked, kind):
    async with door(kind) as record:
        silent = [record.endpoint.connect(5) for _ in range(40)]
        try:
            assert await asked(record, "status") == {}
        finally:
            for one in silent:
                one.close()


async def test_one_that_does_not_answer_in_time_is_named(door, asked):
    async with door(status=anyio.sleep_forever) as record:
        with pytest.raises(ControlUnanswered, match=f"{record.pid} did not answer within 0.3 s"):
            await asked(record, "status", 0.3)
    with pytest.raises(ControlUnanswered, match="cannot be reached"):
        await asked(replace(record, endpoint=Endpoint("unix", "/nowhere/at/all.sock")), "status")


async def test_wrong_tokens_are_logged_slowed_and_keep_out_nobody(door, asked, said, caplog):
    async with door("tcp") as record, anyio.create_task_group() as tasks:
        for _ in range(60):
            tasks.start_soon(said, record, b'{"command": "status", "token": "guess"}\n')
        await anyio.wait_all_tasks_blocked()
        assert await asked(record, "status") == {}
    assert [one.getMessage() for one in caplog.records] == ["the control endpoint: a wrong token from 127.0.0.1"]


async def test_a_guess_is_answered_later_than_the_one_before(door, said, monkeypatch):
    pauses = []
    count = WrongTokens.pause
    monkeypatch.setattr(WrongTokens, "pause", lambda self, *asked: pauses.append(count(self, *asked)) or 0)
    async with door("tcp") as record:
        for _ in range(6):
            answer = json.loads(await said(record, b'{"command": "status", "token": "guess"}\n'))
            assert answer == {"ok": False, "error": "the token is wrong"}
    assert pauses == [0, 0, 0, 0.25, 0.5, 0.75]
