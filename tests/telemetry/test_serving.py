"""A real `serve --http` as those meet it who run it: log lines, probes, metrics, traces."""

import json
import re
import sys
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gateway.config.token_hashes import hash_of
from tests.servers.certificates import write_certificate

SERVERS = Path(__file__).parents[1] / "servers"
SECRETS = ("env-secret-1", "query-secret-2", "header-secret-3", "own-secret-4", "argument-secret-5")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def lines_of_calls(serving) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, serving.lines[:-1]) if line.get("event") == "call"]


@pytest.mark.parametrize("content", [False, True])
def test_every_call_is_one_json_line_without_secrets_or_base64_at_debug_level(serving, content):
    more = f"[logging]\ncontent = {str(content).lower()}\n"
    gateway = serving("--log-format", "json", "--debug", more=more, MCP_GATEWAY_TOKEN="own-secret-4")
    arguments = {"city": "Zürich \x1b[2J", "password": "argument-secret-5", "picture": PIXEL}
    assert "result" in gateway.call("pics__picture", token="own-secret-4")
    assert gateway.call("pics__echo", arguments, token="own-secret-4")["result"]["content"]
    assert "It broke" in str(gateway.call("pics__fail", token="own-secret-4")["result"])
    assert gateway.call("pics__refuse", token="own-secret-4")["error"]["message"] == "not today"
    assert "gone" in str(gateway.call("gone__x", token="own-secret-4"))
    assert "error" in gateway.call("pics__nothing", token="own-secret-4")
    assert gateway.end() == 0

    calls = lines_of_calls(gateway)
    assert [(line["tool"], line["outcome"], line.get("upstream")) for line in calls] == [
        ("pics__picture", "ok", "pics"),
        ("pics__echo", "ok", "pics"),
        ("pics__fail", "tool_error", "pics"),
        ("pics__refuse", "refused", "pics"),
        ("gone__x", "unavailable", "gone"),
        ("pics__nothing", "invalid", None),
    ]
    first = calls[0]
    assert (first["host"], first["profile"], first["revision"]) == ("tester", "default", "2026-07-28")
    assert first["blocks"] >= 2
    assert first["bytes_raw"] > 100 < first["bytes_out"]
    assert first["seconds"] > 0
    requests = [line["request"] for line in calls]
    assert len(set(requests)) == 6
    # Other lines of the same request have the same id.
    assert any(
        line.get("request") == requests[0] and "event" not in line for line in map(json.loads, gateway.lines[:-1])
    )

    everything = "\n".join(gateway.lines)
    assert everything.isascii()
    for secret in SECRETS:
        assert secret not in everything
    assert PIXEL[:24] not in everything
    assert not re.search(r"[A-Za-z0-9+/]{60,}", everything)
    assert ("Z\\u00fcrich" in everything) is content
    assert ("A blue field" in everything) is content
    assert ("not today" in everything) is content
    if content:
        assert '"password": "***"' in calls[1]["arguments"]


def test_a_token_in_an_address_is_in_no_line_not_even_of_libraries(serving, tmp_path, monkeypatch):
    certificate, key = write_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    token, other = "url-secret-url-secret-6", "own-secret-own-secret-7"
    access = (
        f"[access.tokens.phone]\nhash = '{hash_of(token)}'\nurl = true\n[access.tokens.me]\nhash = '{hash_of(other)}'\n"
    )
    tls = f"[http]\ntls_certificate = {json.dumps(str(certificate))}\ntls_key = {json.dumps(str(key))}\n"
    gateway = serving("--log-format", "json", "--debug", more=access + tls)
    assert gateway.url.startswith("https://127.0.0.1:")
    assert gateway.call("pics__echo", path=f"/t/{token}/mcp")["result"]["content"]
    for wrong in (f"/t/{token}/sse", f"/t/{other}/mcp", f"/t/{token}x/mcp", f"/mcp?access_token={token}"):
        assert "error" in gateway.call("pics__echo", path=wrong)
    assert gateway.get(f"/t/{token}/mcp/nobody")[0] == 404
    assert gateway.end() == 0
    everything = "\n".join(gateway.lines)
    assert "call" in everything
    assert token not in everything
    assert other not in everything


def test_text_lines_are_for_people_and_obey_the_level_of_each_part(serving):
    gateway = serving(more='[logging]\nlevel = "error"\nlevels = { telemetry = "info" }\n')
    gateway.call("pics__picture")
    line = gateway.line_with("call pics__picture: ok in ")
    assert re.match(r"\S+Z INFO gateway\.telemetry\.calls \[[0-9a-f]{8}\]: call ", line)
    assert "host tester, profile default, upstream pics; in 0, raw 208, out " in line
    gateway.end()
    assert all("INFO gateway.telemetry" in one or "listening" in one for one in gateway.lines[:-1])


def test_flags_win_over_the_configuration(serving):
    gateway = serving("--log-format", "json", "--log-level", "warning", more='[logging]\nlevel = "debug"\n')
    gateway.call("pics__picture")
    gateway.line_with("upstream gone: ")
    gateway.end()
    said = [json.loads(line) for line in gateway.lines[:-1]]
    assert {line["level"] for line in said if "listening on" not in line["message"]} == {"warning"}


def test_metrics_count_what_was_done(serving):
    gateway = serving()
    status, _, _ = gateway.get("/healthz")
    assert status == 200
    for _ in range(2):
        gateway.call("pics__picture")
    gateway.call("pics__fail")
    gateway.call("gone__x")
    gateway.open_session()
    status, text, headers = gateway.get("/metrics")
    assert status == 200
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values = {
        name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    }
    assert values['mcp_gateway_calls_total{upstream="pics",outcome="ok"}'] == 2
    assert values['mcp_gateway_calls_total{upstream="pics",outcome="tool_error"}'] == 1
    assert values['mcp_gateway_calls_total{upstream="gone",outcome="unavailable"}'] == 1
    assert values['mcp_gateway_call_duration_seconds_count{upstream="pics"}'] == 3
    assert values['mcp_gateway_call_duration_seconds_bucket{upstream="pics",le="+Inf"}'] == 3
    assert values['mcp_gateway_call_bytes_total{upstream="pics",direction="raw"}'] > 500
    assert values['mcp_gateway_upstream_state{upstream="pics",state="ready"}'] == 1
    assert values['mcp_gateway_upstream_state{upstream="gone",state="failed"}'] == 1
    assert values['mcp_gateway_upstream_restarts_total{upstream="pics"}'] == 0
    assert values["mcp_gateway_sessions"] == 1
    documented = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    assert {re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name) for name in values} <= documented


def test_probes_tell_strangers_only_whether_it_works(serving):
    gateway = serving(MCP_GATEWAY_TOKEN="own-secret-4")
    gateway.call("pics__picture", token="own-secret-4")  # so that it is there
    assert gateway.get("/healthz")[:2] == (200, "ok\n")
    assert gateway.get("/readyz")[:2] == (200, '{"ready":true}')
    assert gateway.get("/metrics")[0] == 401
    assert gateway.get("/metrics", Authorization="Bearer wrong")[0] == 401
    known = {"Authorization": "Bearer own-secret-4"}
    assert gateway.get("/metrics", **known)[0] == 200
    told = json.loads(gateway.get("/readyz", **known)[1])
    assert told["ready"] is True
    assert told["upstreams"]["pics"] == {"state": "ready"}
    assert set(told["upstreams"]["gone"]) == {"state", "cause"}
    assert "secret" not in str(told)
    for path in ("/healthz", "/readyz", "/metrics"):
        assert gateway.get(path, Host="evil.example", **known)[0] == 421
        assert gateway.get(path, Origin="http://evil.example", **known)[0] == 403


@pytest.fixture
def collector() -> Generator[tuple[str, Callable[[], bytes]]]:
    """An OTLP collector: its address, and how to get what has arrived once it is something."""
    arrived = threading.Event()
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.path.encode() + self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()
            arrived.set()

        def log_message(self, *arguments):
            pass

    def received() -> bytes:
        assert arrived.wait(60)
        return b"".join(bodies)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()
        thread.join()


def test_spans_go_to_the_collector_that_the_environment_names(serving, collector):
    address, received = collector
    gateway = serving(OTEL_EXPORTER_OTLP_ENDPOINT=address)
    gateway.call("pics__picture", traceparent=f"00-{TRACE}-{PARENT}-01")
    assert gateway.end() == 0
    sent = received()
    assert sent.startswith(b"/v1/traces")
    for expected in (b"tools/call pics__picture", b"mcp-gateway", b"gen_ai.tool.name"):
        assert expected in sent
    assert bytes.fromhex(TRACE) in sent
    assert bytes.fromhex(PARENT) in sent


def test_with_a_span_of_its_own_the_gateway_is_the_upstreams_parent(serving):
    raw = (
        f"[upstreams.raw]\ncommand = {json.dumps(sys.executable)}\n"
        f"args = [{json.dumps(str(SERVERS / 'raw_stdio.py'))}]\n"
    )
    gateway = serving("--profile", "passthrough", more=raw, OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="mine")
    host = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1", "baggage": "user=alice"}
    params = gateway.call("raw__echo", **host)["result"]["structuredContent"]["params"]
    gateway.end()
    spans = spans_in(gateway.lines)
    ours = next(span for span in spans if span["name"] == "tools/call raw__echo")
    theirs = next(span for span in spans if span["parent_id"] == ours["context"]["span_id"])
    assert (ours["parent_id"], ours["context"]["trace_id"]) == (f"0x{PARENT}", f"0x{TRACE}")
    assert theirs["name"] == "MCP send tools/call echo"
    assert ours["resource"]["attributes"]["service.name"] == "mine"
    meta = params["_meta"]
    assert meta["traceparent"] == f"00-{TRACE}-{theirs['context']['span_id'].removeprefix('0x')}-01"
    assert (meta["tracestate"], meta["baggage"]) == ("vendor=1", "user=alice")


def spans_in(lines: list[str]) -> list[dict[str, Any]]:
    """The objects that the console exporter printed between other lines."""
    decoder, text = json.JSONDecoder(), "\n".join(lines)
    return [decoder.raw_decode(text, found.start())[0] for found in re.finditer(r"^\{$", text, re.MULTILINE)]
