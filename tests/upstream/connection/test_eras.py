"""Which era an upstream speaks is found out once, remembered, and forgotten when it is another server."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import UpstreamRefused
from gateway.upstream import Catalogues, Upstreams, UpstreamState
from gateway.upstream.connection import negotiate_era
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.negotiate_era import agree
from gateway.upstream.connection.request_context import RequestContext

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=10, idle=10)
OLD = Caller(revision="2025-11-25", client_name="old", session="1")
NEW = Caller(revision="2026-07-28", client_name="new")

SERVER = """
import json, sys
said = json.load(open(sys.argv[1]))
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    with open(sys.argv[1] + ".asked", "a") as asked:
        asked.write(method + "\\n")
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method in said:
        answer["result"] = said[method]
    elif said["dumb"]:
        continue
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""


class Server:
    """A stdio server that speaks what `says` sets, and notes what it is asked."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "server.py"
        self._program.write_text(SERVER)
        self._said = folder / "said.json"
        self._folder = folder

    def says(self, *eras: str, version: str = "1", dumb: bool = False) -> None:
        info = {"name": "s", "version": version}
        said: dict[str, Any] = {"dumb": dumb, "tools/list": {"tools": []}, "tools/call": {"content": []}}
        if "handshake" in eras:
            said |= {"ping": {}}
            said |= {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        if "modern" in eras:
            meta = {"io.modelcontextprotocol/serverInfo": info}
            found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": meta}
            said |= {"server/discover": found}
        self._said.write_text(json.dumps(said))
        self._asked.unlink(missing_ok=True)

    @property
    def _asked(self) -> Path:
        return self._folder / "said.json.asked"

    @property
    def openings(self) -> list[str]:
        """How it was opened, one after the other."""
        asked = self._asked.read_text().split() if self._asked.exists() else []
        return [method for method in asked if method in ("initialize", "server/discover")]

    async def serves(self, *callers: Caller, catalogues: Catalogues | None = None) -> list[str]:
        """Run it in a gateway for these callers; the openings that this took."""
        before = len(self.openings)
        settings = UpstreamSettings(command=sys.executable, args=(str(self._program), str(self._said)))
        with anyio.fail_after(20):
            async with Upstreams({"s": settings}, on_change=lambda *_: None, catalogues=catalogues) as upstreams:
                assert await upstreams["s"].ready(10), upstreams["s"].cause
                for caller in callers:
                    await upstreams["s"].request("tools/call", {"name": "t"}, RequestContext(caller), LIMITS)
                assert upstreams["s"].state is UpstreamState.READY
        return self.openings[before:]


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


@pytest.fixture
def catalogues(tmp_path: Path) -> Catalogues:
    return Catalogues(tmp_path / "kept")


async def test_each_host_is_served_in_its_own_era_where_both_are_spoken(server: Server, catalogues: Catalogues) -> None:
    server.says("handshake", "modern")
    for _ in range(2):
        assert await server.serves(OLD, NEW, catalogues=catalogues) == ["initialize", "server/discover"]


async def test_a_refused_era_is_asked_for_once_and_never_again(server: Server, catalogues: Catalogues) -> None:
    server.says("handshake")
    first = await server.serves(NEW, NEW, OLD, catalogues=catalogues)
    assert first.count("server/discover") == 1
    assert "server/discover" not in await server.serves(NEW, OLD, catalogues=catalogues)


async def test_a_server_that_is_only_stateless_is_asked_to_shake_hands_once(
    server: Server, catalogues: Catalogues
) -> None:
    server.says("modern")
    assert await server.serves(catalogues=catalogues) == ["initialize", "server/discover"]
    assert await server.serves(OLD, NEW, catalogues=catalogues) == ["server/discover"] * 2


async def test_without_a_disk_an_era_is_remembered_as_long_as_the_gateway_runs(server: Server) -> None:
    server.says("handshake")
    for _ in range(2):
        assert (await server.serves(NEW, Caller(revision="2026-07-28", client_name="other"))).count(
            "server/discover"
        ) == 1


async def test_another_version_may_have_learned_another_era(server: Server, catalogues: Catalogues) -> None:
    server.says("handshake")
    await server.serves(NEW, catalogues=catalogues)
    server.says("handshake", "modern", version="2")
    assert await server.serves(NEW, catalogues=catalogues) == ["initialize", "server/discover"]


async def test_another_server_in_the_place_of_a_stateless_one_is_reached(
    server: Server, catalogues: Catalogues
) -> None:
    server.says("modern")
    await server.serves(NEW, catalogues=catalogues)
    server.says("handshake", version="2")
    assert (await server.serves(OLD, catalogues=catalogues))[-1] == "initialize"


async def test_one_that_ignores_what_it_does_not_know_costs_little(
    server: Server, catalogues: Catalogues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiate_era, "PATIENCE", 600.0)  # it is not waited for to the end
    server.says("handshake", dumb=True)
    with anyio.fail_after(60):
        assert (await server.serves(NEW, catalogues=catalogues)).count("server/discover") == 1
    assert "server/discover" not in await server.serves(NEW, catalogues=catalogues)


# -- the question itself

FOUND = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
SHAKEN = {"protocolVersion": "2025-11-25", "capabilities": {}}


class Asked:
    """Answers by method: a result, an error, or nothing at all (None); `after` seconds for server/discover."""

    def __init__(self, after: float = 0, **answers: Any) -> None:
        self._after = after
        self._answers = answers

    async def __call__(self, method: str, params: Mapping[str, Any], revision: str | None) -> dict[str, Any]:
        if method == "server/discover":
            await anyio.sleep(self._after)
        answer = self._answers[method.rpartition("/")[2]]
        if answer is None:
            await anyio.sleep_forever()
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer


UNKNOWN = UpstreamRefused("x", -32601, "Method not found")


async def agreed(server: Asked) -> str:
    with anyio.fail_after(10):
        return (await agree(server, ClientIdentity(), "modern")).era


async def test_a_server_that_answers_the_ping_alone_is_of_the_handshake_era(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiate_era, "GRACE", 0.01)
    assert await agreed(Asked(ping={}, discover=None, initialize=SHAKEN)) == "handshake"


async def test_a_server_that_refuses_the_ping_is_given_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiate_era, "GRACE", 0.01)
    assert await agreed(Asked(after=0.2, ping=UNKNOWN, discover=FOUND, initialize=SHAKEN)) == "modern"


async def test_a_server_that_answers_neither_is_waited_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiate_era, "PATIENCE", 0.05)
    assert await agreed(Asked(ping=None, discover=None, initialize=SHAKEN)) == "handshake"


async def test_an_answer_is_not_waited_for_longer_than_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiate_era, "GRACE", 600.0)
    with anyio.fail_after(30):
        assert await agreed(Asked(ping={}, discover=FOUND, initialize=SHAKEN)) == "modern"
        assert await agreed(Asked(ping={}, discover=UNKNOWN, initialize=SHAKEN)) == "handshake"
