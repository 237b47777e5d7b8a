"""`mcp-gateway proxy`, and the proxy beside `serve`, as processes of their own."""

import base64
import io
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from PIL import Image

from tests.servers.loopback import open_url


@pytest.fixture
def api():
    """A model API that keeps the bodies of its requests."""
    bodies: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server: Any
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.bodies = bodies
        server.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def png() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def post(url, content):
    return post_messages(url, [{"role": "tool", "tool_call_id": "c", "content": content}])


def post_messages(url, messages, headers=None):
    body = json.dumps({"messages": messages}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", body, headers or {})
    with open_url(request, 30) as answer:
        return answer.headers["x-mcp-gateway-repairs"]


def images(body):
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    return [part["image_url"]["url"].partition(",")[2] for part in parts if part["type"] == "image_url"]


def base_url(process):
    """What the command says that a client is given."""
    return process.line_with("OpenAI").split()[0]


def test_the_proxy_says_its_base_urls_and_repairs(start, api):
    process = start("proxy", "--to", api.url, "--port", "0", "--explain")
    url = base_url(process)
    assert url.endswith("/v1")
    assert process.line_with("Anthropic").split()[0] == url.removesuffix("/v1")
    assert post(url, f"data:image/png;base64,{png()}") == "1"
    assert images(api.bodies[0]) == [png()]
    assert process.line_with("--- messages.0.content")
    shortened = process.line_with("data:image/png;base64,")
    assert len(shortened) < 100
    assert process.line_with("+++")


def test_an_address_that_is_none_is_refused_in_words(command):
    ended = command("proxy", "--to", "ftp://api.example.com")
    assert ended.code == 2
    assert "model_proxy.to: give the base url of the model API" in ended.err


def test_an_image_is_fitted_to_the_model_behind(start, api, tmp_path):
    config = tmp_path / "gateway.toml"
    config.write_text(f'[model_proxy]\nto = "{api.url}"\nport = 0\n')
    url = base_url(start("proxy", "--config", config))
    tiff = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(tiff, "TIFF")
    assert post(url, f"data:image/tiff;base64,{base64.b64encode(tiff.getvalue()).decode()}") == "1"
    (shown,) = images(api.bodies[0])
    assert Image.open(io.BytesIO(base64.b64decode(shown))).format == "PNG"


def test_beside_serve_the_proxy_opens_the_handles_that_hosts_were_given(start, api, pictures):
    config = pictures(f'[model_proxy]\nto = "{api.url}"\nport = 0\n')
    process = start("serve", "--config", config, "--profile", "cline")
    url = base_url(process)
    process.initialize("cline")
    process.send(id="list", method="tools/list", params={})
    process.answer("list")
    process.send(id="call", method="tools/call", params={"name": "pics__picture", "arguments": {}})
    result = process.answer("call")["result"]
    assert {block["type"] for block in result["content"]} == {"text"}
    assert post(url, json.dumps(result)) == "1"
    assert len(images(api.bodies[0])) == 1


def test_a_line_in_a_users_message_is_opened_and_named(start, api, pictures, tmp_path):
    """smolagents writes a tool's text into a user's message; here with the line that the gateway itself wrote."""
    store = f'[store]\nurl = "{(tmp_path / "kept").as_uri()}"\n'
    config = pictures(f'{store}[model_proxy]\nto = "{api.url}"\nport = 0\n')
    process = start("serve", "--config", config, "--profile", "smolagents")
    url = base_url(process)
    process.initialize("mcp")
    process.send(id="list", method="tools/list", params={})
    process.answer("list")
    process.send(id="call", method="tools/call", params={"name": "pics__picture", "arguments": {}})
    ((block,),) = [process.answer("call")["result"]["content"]]
    observed = [{"role": "user", "content": [{"type": "text", "text": f"Observation:\n{block['text']}"}]}]
    # A proxy of its own has the same store where that is a folder, and says what it puts back.
    alone = start("proxy", "--config", config, "--to", api.url, "--explain")
    for one in (url, base_url(alone)):
        assert post_messages(one, observed) == "1"
        assert len(images(api.bodies[-1])) == 1
    assert alone.line_with("--- messages.0.content.0.text")
    assert "put back" in alone.line_with("note: rescued: img_")


@pytest.mark.parametrize(
    ("http_token", "proxy_token", "owner", "opened"),
    [
        ("secret", None, "token", False),
        ("secret", "other", "token", True),
        ("secret", "other", "local", False),
        (None, None, "local", True),
        (None, None, "token", False),
        (None, "other", "token", False),
    ],
)
def test_whoever_the_proxy_asked_for_no_token_reads_nothing_of_those_who_gave_one(
    start, api, command, pictures, tmp_path, http_token, proxy_token, owner, opened
):
    http = f'[http]\ntoken = "{http_token}"\n' if http_token else ""
    token = f'token = "{proxy_token}"\n' if proxy_token else ""
    store = f'[store]\nurl = "{(tmp_path / "kept").as_uri()}"\n'
    config = pictures(f'{http}{store}[model_proxy]\nto = "{api.url}"\nport = 0\n{token}')
    picture = tmp_path / "red.png"
    picture.write_bytes(base64.b64decode(png()))
    handle = command("put", picture, "--config", config, "--owner", owner, "--json").json()["handle"]
    url = base_url(start("serve", "--config", config, "--http", "--port", "0"))
    observed = [{"role": "user", "content": f"Observation:\n[image 1: image/png, 40x30; handle {handle}]"}]
    repairs = post_messages(url, observed, {"X-MCP-Gateway-Token": proxy_token} if proxy_token else {})
    assert repairs == ("1" if opened else "0")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give --to URL"),
        (("--to", "api.example"), "base url"),
        (("--to", "http://127.0.0.1:1", "--bind", "0.0.0.0"), "token"),
        (("--to", "http://127.0.0.1:1", "--profile", "vlm"), "vllm"),
        (("--to", "http://127.0.0.1:1", "--profile", "cohere"), "not proxied"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_line(command, arguments, words):
    ended = command("proxy", *arguments)
    assert ended.code == 2
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_a_proxy_beside_people_with_tokens_says_that_their_content_is_not_restored(start, api, pictures):
    tokens = '[access.tokens.alice]\ntoken = "a-token-of-alice-1234"\n'
    config = pictures(f'{tokens}[model_proxy]\nto = "{api.url}"\nport = 0\n')
    process = start("serve", "--config", config, "--http", "--port", "0")
    process.line_with("it restores no content of callers with an access token of their own")
