"""Which era an upstream speaks, asked with plain functions in place of a connection."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.errors import UpstreamRefused
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.negotiate_era import Opening, agree
from gateway.upstream.transports.causes import HttpStatus, NotMcp

pytestmark = pytest.mark.anyio

GUISE = ClientIdentity({"name": "mcp-gateway", "version": "1"})
MODERN = {"supportedVersions": ["2026-07-28", "2099-01-01"], "capabilities": {"tools": {"listChanged": True}}}
HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}


class Server:
    """Answers each method with what it was given: a result, or an error to raise. `asked` are the methods, in order."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"initialize": answers.get("initialize"), "server/discover": answers.get("discover")}
        self.asked: list[str] = []

    async def __call__(self, method: str, params: Mapping[str, Any], revision: str | None) -> dict[str, Any]:
        if method == "ping":
            return {}
        self.asked.append(method)
        answer = self.answers[method]
        if answer is None:
            raise UpstreamRefused("x", -32601, f"no {method}")
        if isinstance(answer, Exception):
            raise answer
        if method == "server/discover":
            assert revision == params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
            assert params["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}
        else:
            assert revision is None
            assert (params["protocolVersion"], params["capabilities"]) == ("2025-11-25", {})
        return answer


async def test_the_handshake_comes_first_and_is_enough() -> None:
    server = Server(initialize=HANDSHAKE, discover=MODERN)
    opening = await agree(server, GUISE, "handshake")
    assert opening == Opening("handshake", "2025-06-18", {"name": "s"}, {"tools": {}})
    assert server.asked == ["initialize"]


@pytest.mark.parametrize(
    "refusal", [UpstreamRefused("x", -32022, "modern only"), UpstreamRefused("x", -32600, "eh?"), HttpStatus(400)]
)
async def test_a_refused_handshake_is_followed_by_the_question_of_the_stateless_era(refusal: Exception) -> None:
    server = Server(initialize=refusal, discover=MODERN)
    opening = await agree(server, GUISE, "handshake")
    assert (opening.era, opening.revision) == ("modern", "2026-07-28")
    assert opening.announces("tools")
    assert not opening.offers("resources")


async def test_a_server_known_to_be_modern_is_asked_so_first_and_may_have_changed() -> None:
    server = Server(initialize=HANDSHAKE, discover=MODERN)
    assert (await agree(server, GUISE, "modern")).era == "modern"
    assert server.asked == ["server/discover"]
    replaced = Server(initialize=HANDSHAKE)
    assert (await agree(replaced, GUISE, "modern")).era == "handshake"


async def test_a_server_that_speaks_neither_is_blamed_for_its_answer_to_the_handshake() -> None:
    with pytest.raises(UpstreamRefused, match="licence"):
        await agree(Server(initialize=UpstreamRefused("x", -32603, "licence")), GUISE, "handshake")


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_a_closed_door_is_not_knocked_at_twice(status: int) -> None:
    server = Server(initialize=HttpStatus(status), discover=MODERN)
    with pytest.raises(HttpStatus):
        await agree(server, GUISE, "handshake")
    assert server.asked == ["initialize"]


async def test_unsupported_versions_are_negotiated_down_to_a_mutual_one_or_refused() -> None:
    refusal = UpstreamRefused("x", -32022, "no", {"supported": ["2031-01-01"]})
    with pytest.raises(UpstreamRefused):
        await agree(Server(discover=refusal), GUISE, "handshake")
    with pytest.raises(NotMcp, match="2031"):
        await agree(Server(discover={"supportedVersions": ["2031-01-01"]}), GUISE, "handshake")


@pytest.mark.parametrize("answer", [{}, {"protocolVersion": 3}, {"protocolVersion": "2026-07-28"}])
async def test_an_answer_to_the_handshake_without_a_handshake_revision_is_no_mcp(answer: dict[str, Any]) -> None:
    with pytest.raises(NotMcp):
        await agree(Server(initialize=answer), GUISE, "handshake")


async def test_fields_of_the_wrong_kind_are_as_good_as_absent() -> None:
    odd = {"protocolVersion": "2025-11-25", "capabilities": [], "serverInfo": "me", "instructions": 7}
    assert await agree(Server(initialize=odd), GUISE, "handshake") == Opening("handshake", "2025-11-25")
