"""The era of a connection, and what is answered before anything is ready: against the rules of the SDK's own server."""

import anyio
import mcp_types._v2026_07_28
import pytest
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from gateway.core.model import revisions
from gateway.core.tools.instructions import Introductions
from gateway.serving.mcp import handshake
from gateway.serving.mcp.handshake import Handshake, Identity, Refusal

IDENTITY = Identity("sample", "1.0", "Sample", "Be kind.")
P = "io.modelcontextprotocol/"
CLIENT = {"name": "Tester", "version": "9"}


def meta(**fields):
    return {"_meta": {P + key: value for key, value in fields.items()}}


MODERN = meta(protocolVersion="2026-07-28", clientCapabilities={}, clientInfo=CLIENT)
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}

OPENINGS = {
    "initialize": [("initialize", INITIALIZE)],
    "initialize twice": [("initialize", INITIALIZE), ("initialize", {**INITIALIZE, "protocolVersion": "2024-11-05"})],
    "initialize with an envelope": [("initialize", {**INITIALIZE, **MODERN})],
    "an unknown revision": [("initialize", {**INITIALIZE, "protocolVersion": "1999-01-01"})],
    "a revision without handshake": [("initialize", {**INITIALIZE, "protocolVersion": "2026-07-28"})],
    "initialize then envelope": [("initialize", INITIALIZE), ("ping", MODERN), ("server/discover", MODERN)],
    "initialize then discover": [("initialize", INITIALIZE), ("server/discover", None), ("ping", {})],
    "discover": [("server/discover", MODERN), ("server/discover", MODERN)],
    "discover of a later version": [("server/discover", meta(protocolVersion="2027-01-01", clientCapabilities={}))],
    "discover without capabilities": [("server/discover", meta(protocolVersion="2026-07-28"))],
    "discover with a number": [("server/discover", meta(protocolVersion=7, clientCapabilities={}))],
    "discover without envelope": [("server/discover", None)],
    "ping first": [("ping", None), ("initialize", INITIALIZE)],
    "modern ping then initialize": [("ping", MODERN), ("initialize", INITIALIZE), ("ping", {"_meta": 3})],
    "modern then bare initialize": [("ping", MODERN), ("initialize", {})],
    "modern then legacy": [("ping", MODERN), ("server/discover", {}), ("server/discover", None)],
}


def ours(requests):
    connection = Handshake(IDENTITY)
    answers = []
    for method, params in requests:
        try:
            answers.append(connection.answer(method, params))
        except Refusal as refusal:
            answers.append(refusal.wire())
    return answers


async def the_sdks(requests):
    async def nothing(context, params):
        raise NotImplementedError

    server = Server(
        IDENTITY.name,
        version=IDENTITY.version,
        title=IDENTITY.title,
        instructions=IDENTITY.instructions,
        on_list_tools=nothing,
        on_list_resources=nothing,
        on_subscriptions_listen=nothing,
    )
    answers = []
    with anyio.fail_after(10):
        async with create_client_server_memory_streams() as (client, streams), anyio.create_task_group() as tasks:
            reads, writes = client

            async def serve():
                await serve_dual_era_loop(server, *streams, lifespan_state=None)

            tasks.start_soon(serve)
            for number, (method, params) in enumerate(requests):
                fields = {} if params is None else {"params": params}
                await writes.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method=method, **fields)))
                received = await reads.receive()
                assert isinstance(received, SessionMessage)
                message = received.message
                if isinstance(message, JSONRPCError):
                    answers.append(message.error.model_dump(exclude_none=True))
                else:
                    assert isinstance(message, JSONRPCResponse)
                    answers.append(message.result)
            tasks.cancel_scope.cancel()
    return answers


def honest(answer):
    """The SDK's answer with our capabilities in it: which they are is no matter of the handshake."""
    if "capabilities" not in answer:
        return answer
    return {**answer, "capabilities": handshake.capabilities(modern="supportedVersions" in answer)}


@pytest.mark.anyio
@pytest.mark.parametrize("name", OPENINGS)
async def test_an_opening_is_answered_as_the_sdk_answers_it(name):
    assert ours(OPENINGS[name]) == [honest(answer) for answer in await the_sdks(OPENINGS[name])]


@pytest.mark.anyio
async def test_only_here_initialize_is_accepted_after_a_lone_discover():
    requests = [("server/discover", MODERN), ("initialize", INITIALIZE)]
    assert "protocolVersion" in ours(requests)[1]
    assert (await the_sdks(requests))[1]["code"] == -32022


def test_a_modern_request_that_is_refused_does_not_choose_the_era():
    later = meta(protocolVersion="2027-01-01", clientCapabilities={})
    refused, accepted = ours([("tools/list", later), ("initialize", INITIALIZE)])
    assert refused["code"] == -32022
    assert accepted["protocolVersion"] == "2025-06-18"


def test_what_is_for_the_service_is_left_to_it():
    connection = Handshake(IDENTITY)
    assert connection.answer("tools/list", None) is None
    assert connection.era is None
    assert connection.answer("tools/list", MODERN) is None
    assert connection.era == "modern"


def test_what_the_host_said_is_kept():
    connection = Handshake(IDENTITY)
    connection.answer("initialize", INITIALIZE)
    assert (connection.era, connection.revision, connection.client) == ("handshake", "2025-06-18", INITIALIZE)


@pytest.mark.parametrize("lacking", ["protocolVersion", "capabilities", "clientInfo"])
def test_an_initialize_that_lacks_a_field_is_refused_and_chooses_nothing(lacking):
    connection = Handshake(IDENTITY)
    with pytest.raises(Refusal) as caught:
        connection.answer("initialize", {key: value for key, value in INITIALIZE.items() if key != lacking})
    assert caught.value.code == -32602
    assert connection.era is None


def test_the_revisions_are_those_of_the_sdk():
    assert revisions.HANDSHAKE_REVISIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert revisions.MODERN_REVISIONS == MODERN_PROTOCOL_VERSIONS


SAID = Introductions((("charts", "Draw " * 100),), (("tester", 60),), 300)


@pytest.mark.parametrize(
    ("method", "params", "longest"),
    [
        ("initialize", INITIALIZE, 60),
        ("initialize", {**INITIALIZE, "clientInfo": {"name": "Other", "version": "1"}}, 300),
        ("server/discover", MODERN, 60),
        ("server/discover", meta(protocolVersion="2026-07-28", clientCapabilities={}), 300),
        ("server/discover", meta(protocolVersion="2026-07-28", clientCapabilities={}, clientInfo={"name": 3}), 300),
    ],
)
def test_a_host_is_told_what_the_upstreams_say_cut_to_what_it_keeps(method, params, longest):
    connection = Handshake(IDENTITY)
    connection.introduce(IDENTITY._replace(others=SAID))
    told = connection.answer(method, params)["instructions"]
    assert told.startswith("Be kind.")
    assert longest - 10 < len(told) <= longest if longest > 60 else told == "Be kind."


@pytest.mark.parametrize(("skilled", "declared"), [(None, True), (("charts",), True), ((), False)])
def test_skills_are_declared_in_both_eras_unless_no_upstream_has_any(skilled, declared):
    identity = IDENTITY._replace(others=Introductions(skilled=skilled))
    for answer in (handshake.discover_result(identity), handshake.initialize_result(identity, INITIALIZE)):
        extensions = answer["capabilities"]["extensions"]
        assert extensions.get("io.modelcontextprotocol/skills") == ({"directoryRead": True} if declared else None)


def test_what_is_offered_is_known_to_the_protocol_and_tasks_to_2026_alone():
    offered = handshake.capabilities(modern=True)
    assert handshake.discover_result(IDENTITY)["capabilities"] == offered
    before = handshake.capabilities(modern=False)
    assert offered["extensions"].keys() - before["extensions"].keys() == {"io.modelcontextprotocol/tasks"}
    assert {**offered, "extensions": before["extensions"]} == before
    modern = mcp_types._v2026_07_28.ServerCapabilities.model_validate(offered)
    assert modern.model_dump(by_alias=True, exclude_none=True) == offered
    assert offered["resources"] == {"listChanged": True, "subscribe": True}
