"""What hosts send that only replicas should: it gets them nowhere."""

from collections.abc import Callable

import httpx2

from tests.serving.cluster.conftest import ALICE, BOB, Host, Replicas


def test_a_made_up_mark_changes_nothing(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    alice.headers["X-MCP-Gateway-Hop"] = "e30.00"
    assert alice.call(second, "own__count").startswith("1 "), "it is passed on as without the mark"


def test_ids_of_no_session_are_answered_as_ever(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    named = alice.open(first)
    replica = named.partition(".")[0]
    made_up = ("nothing", "abcdefabcdef.1", f"{replica}.1", f"{replica}.", ".", f"{replica}.../../console", "x" * 4_000)
    for session in made_up:
        alice.headers["Mcp-Session-Id"] = session
        for at in (first, second):
            answer = alice.post(at, alice.message("tools/list", {}))
            assert answer.status_code == 404, (session, answer.text)


def test_no_replica_is_asked_without_a_valid_token(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice, nobody = host(), host("a-wrong-token-0123456789")
    nobody.headers["Mcp-Session-Id"] = alice.open(first)
    assert nobody.post(second, nobody.message("tools/list", {})).status_code == 401
    assert "mcp_gateway_requests_passed_on_total 0" in metrics(second.url)
    assert alice.ask(second, "tools/list")["result"]["tools"]
    assert "mcp_gateway_requests_passed_on_total 1" in metrics(second.url)
    assert "mcp_gateway_replicas 2" in metrics(second.url)
    assert "mcp_gateway_cluster_redis_up 1" in metrics(second.url)


def test_messages_for_a_stream_find_it(replicas: Replicas) -> None:
    first, second = replicas.start(), replicas.start()
    headers = {"Authorization": f"Bearer {ALICE}"}
    with (
        httpx2.Client(trust_env=False, timeout=30) as http,
        http.stream("GET", f"{first.url}/sse", headers=headers) as stream,
    ):
        lines = stream.iter_lines()
        place = next(line.removeprefix("data: ") for line in lines if line.startswith("data: "))
        about = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        assert http.post(f"{second.url}{place}", json=opening, headers=headers).status_code == 202
        assert '"protocolVersion":"2024-11-05"' in next(line for line in lines if line.startswith("data: "))
        other = {"Authorization": f"Bearer {BOB}"}
        assert http.post(f"{second.url}{place}", json=opening, headers=other).status_code in (403, 404)
        gone = place.replace("~", "~0", 1)
        assert http.post(f"{second.url}{gone}", json=opening, headers=headers).status_code == 404


def metrics(url: str) -> str:
    with httpx2.Client(trust_env=False) as http:
        return http.get(f"{url}/metrics", headers={"Authorization": f"Bearer {ALICE}"}).text
