"""The fleet in small, with every fault; and whether its accountant would notice."""

import asyncio
import socket
from pathlib import Path

import httpx2
import pytest

from benchmarks.calls.processes import free_port
from benchmarks.fleet.clients import STATELESS, Message, StatelessClient
from benchmarks.fleet.hosts import MIX, FleetHost
from benchmarks.fleet.ledger import Call, Ledger, Promise, recovered_after
from benchmarks.fleet.relay import Cable, Relay
from benchmarks.fleet.report import BEGIN, END, filled, run_text
from benchmarks.fleet.run import Found, Options, Phase, run

pytestmark = pytest.mark.anyio
TINY = Options(hosts=15, think=1.0, calm=1.5, redis_away=1.0, store_away=2.0, lost_after=1.5, grace=5.0, nginx=False)
MINE, ANOTHERS = "mark-1-1-0123abcd", "mark-2-7-0123abcd"


def call(outcome: str = "ok", reason: str = "", *, ended: float = 1.0) -> Call:
    made = Call(0, "echo", "2025-11-25", MINE, 0.0, ended=ended, reason=reason)
    made.outcome = outcome  # pyright: ignore[reportAttributeAccessIssue]
    return made


@pytest.mark.usefixtures("redis_program")
async def test_nothing_is_lost_or_seen_by_others_whatever_breaks(tmp_path: Path) -> None:
    found = await run(TINY, tmp_path)
    logs = "\n".join(path.read_text("utf-8", "replace")[-3_000:] for path in tmp_path.glob("replica*.log"))
    assert found.ledger.broken_promises() == [], logs
    assert len(found.phases) == 8
    assert all(found.ledger.of_phase(number) for number in range(len(found.phases)))
    assert found.read == len(found.ledger.promises) > 0
    assert {made.kind for made in found.ledger.calls} == set(MIX)
    assert len({made.revision for made in found.ledger.calls}) == 5
    assert all(made.reason for made in found.ledger.calls if made.outcome == "told why")
    calm = found.ledger.of_phase(0)
    assert {made.outcome for made in calm} == {"ok"}
    assert "Lost: 0. Seen by somebody else: 0." in run_text(found, TINY, "A run of a test.")


class Slow(StatelessClient):
    """A gateway that asks the user, and then answers early, as on a busy machine."""

    async def ask(self, method: str, params: Message, capabilities: Message | None = None) -> Message:
        words = f"yes {MINE}"
        if params["name"] != "gateway_wait" and "requestState" not in params:
            return {"resultType": "input_required", "inputRequests": {"q": {}}, "requestState": "s"}
        if params["name"] != "gateway_wait":
            words = "[asks__ask is still running (3 s): call gateway_wait with call c_1 for its result]"
        return {"content": [{"type": "text", "text": words}]}


async def test_a_host_collects_a_call_that_is_answered_early_after_its_user_was_asked() -> None:
    ledger, made = Ledger(), call()
    async with httpx2.AsyncClient() as http:
        host = FleetHost(4, http, "http://127.0.0.1:9/mcp", ledger, 1.0)
        host._client = Slow(http, "http://127.0.0.1:9/mcp", "token", "host", STATELESS)
        await host._ask(made)
    assert (made.outcome, made.reason) == ("ok", "")
    assert ledger.broken_promises() == []


def test_the_accountant_notices_what_must_not_be() -> None:
    ledger = Ledger()
    ledger.calls = [call(), call("told why", "its replica is gone"), call("cut off", "broken")]
    ledger.look_for_others(MINE, f"done {MINE}", "echo")
    ledger.carried_out({MINE: 1})
    assert ledger.broken_promises() == []
    ledger.look_for_others(MINE, f"done {ANOTHERS}", "echo")
    ledger.carried_out({MINE: 2})
    ledger.calls += [call("lost", "no answer"), call("told why", " ")]
    broken = "\n".join(ledger.broken_promises())
    for words in (f"{ANOTHERS} in the answer to {MINE}", "was carried out 2 times", "no answer", "without a word"):
        assert words in broken


def test_trouble_lasts_until_the_last_call_that_had_it() -> None:
    asked_again = call(ended=7.0)
    asked_again.retried.append("503")
    assert recovered_after([call(ended=9.0)], 5.0) == 0.0
    assert recovered_after([call(ended=9.0), asked_again], 5.0) == 2.0


def test_the_report_says_why_calls_failed_and_what_is_lost() -> None:
    ledger = Ledger(promises=[Promise("img_1", "ada", MINE)], lost=["its owner cannot read img_1"])
    ledger.calls = [call(), call("told why", "upstream 'own': its state is lost (call again)"), call("cut off", "x")]
    text = run_text(Found((Phase("a fault", 0.0, 5.0),), ledger, 1), TINY, "A run of a test.")
    assert "| a fault | 3 | 1 | 0 | 1 | 1 | 0 | 0 |" in text
    assert "| its state in an upstream was gone with a replica | 1 |" in text
    assert "Lost: 1. Seen by somebody else: 0.\n- lost: its owner cannot read img_1" in text
    page = filled(f"before\n{BEGIN}old\n{END}after\n", text)
    assert page == f"before\n{BEGIN}{text}{END}after\n"


async def test_a_relay_goes_round_and_its_cable_can_be_pulled() -> None:
    async def name(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"%d" % writer.get_extra_info("sockname")[1])
        await writer.drain()
        writer.close()

    one, other = [await asyncio.start_server(name, "127.0.0.1", 0) for _ in range(2)]
    ports = [server.sockets[0].getsockname()[1] for server in (one, other)]

    async def asked() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        try:
            async with asyncio.timeout(1):
                return await reader.read()
        finally:
            writer.close()

    async with one, other, Relay(free_port(), [*ports, free_port()]) as relay:
        assert {await asked() for _ in range(6)} == {b"%d" % port for port in ports}
        await relay.set(Cable.SILENT)
        with pytest.raises(TimeoutError):
            await asked()
        await relay.set(Cable.PULLED)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", relay.port), 1)
        await relay.set(Cable.WHOLE)
        assert await asked()
