"""LiteLLM and the model proxy: in front of LiteLLM every picture is seen; behind it, some are gone already.

LiteLLM brings a hundred packages, so these tests run where MCP_GATEWAY_LITELLM names its program:

    python -m venv /tmp/litellm && /tmp/litellm/bin/pip install 'litellm[proxy]==1.106.2'
    MCP_GATEWAY_LITELLM=/tmp/litellm/bin/litellm make test ARGS=tests/real/test_litellm.py
"""

import base64
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest

from gateway.config.load_settings import load_settings
from gateway.testing.model_apis.server import model_server
from lab.serve_models import serve_models

EXAMPLE = Path(__file__).parents[2] / "examples" / "litellm"
LITELLM = os.environ.get("MCP_GATEWAY_LITELLM", "")
needs_litellm = pytest.mark.skipif(not LITELLM, reason="MCP_GATEWAY_LITELLM names no program: see the top of this file")

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAEElEQVR42mNQSDgARww4OQAdNg8BewpllwAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
TEXT = {"type": "text", "text": "The chart:"}
KEY = "sk-9f2c1d7be04a4a63b5a8d3e17c60f4921ab7"
"""LiteLLM's own key: the proxy passes it on."""

FORMS: dict[str, Any] = {
    "content as JSON": json.dumps([TEXT, IMAGE]),
    "CallToolResult as JSON": json.dumps({"content": [TEXT, IMAGE], "isError": False}),
    "str(content)": f"[TextContent(type='text', text='The chart:'), ImageContent(type='image', data='{PNG}')]",
    "data URI in Markdown": f"The chart: ![chart](data:image/png;base64,{PNG})",
    "image_url parts": [TEXT, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
    "MCP's blocks": [TEXT, IMAGE],
}


def asked(model: str, result: Any) -> dict[str, Any]:
    function = {"name": "draw", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    tool = {"type": "function", "function": {"name": "draw", "parameters": {"type": "object", "properties": {}}}}
    messages = [
        {"role": "user", "content": "Draw it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]
    return {"model": model, "messages": messages, "tools": [tool], "max_tokens": 100}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def logged(output: IO[bytes], log: Path, ready: bytes, settled: threading.Event) -> None:
    """Write each line to `log`; `settled` once one of them holds `ready`, and at the end of the output in any case."""
    with output, log.open("wb", buffering=0) as written:
        for line in output:
            written.write(line)
            if ready in line:
                settled.set()
    settled.set()


@contextmanager
def started(command: list[str], ready: str, log: Path, **environment: str) -> Generator[None]:
    """A program, once it has written a line with `ready` in it."""
    own = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1", **environment}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=own)
    assert process.stdout is not None
    settled = threading.Event()
    reader = threading.Thread(target=logged, args=(process.stdout, log, ready.encode(), settled))
    reader.start()
    try:
        settled.wait()
        assert ready in (text := log.read_text("utf-8", "replace")), text[-3000:]
        yield
    finally:
        process.terminate()
        process.wait(60)
        reader.join(60)


@contextmanager
def litellm(model_api: str, tmp_path: Path) -> Generator[str]:
    """The example's LiteLLM, with `model_api` behind it."""
    port = free_port()
    command = [LITELLM, "--config", str(EXAMPLE / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    keys = {"ANTHROPIC_API_KEY": "none", "OPENAI_API_KEY": "none", "LITELLM_MASTER_KEY": KEY}
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    bases = {"ANTHROPIC_API_BASE": model_api, "OPENAI_API_BASE": f"{model_api}/v1"}
    ready = "Application startup complete"
    with started(command, ready, tmp_path / "litellm.log", **keys, **offline, **bases):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def proxy(to: str, tmp_path: Path) -> Generator[str]:
    port = free_port()
    command = [sys.executable, "-m", "gateway", "proxy", "--to", to, "--port", str(port)]
    with started(command, f":{port}", tmp_path / "proxy.log"):
        yield f"http://127.0.0.1:{port}"


def answered(base: str, model: str, result: Any) -> str:
    """What the model says that it sees, or why the request was refused."""
    headers = {"Authorization": f"Bearer {KEY}"}
    body = asked(model, result)
    answer = httpx2.post(f"{base}/v1/chat/completions", json=body, headers=headers, timeout=60, trust_env=False)
    body = answer.json()
    return body["choices"][0]["message"]["content"] if answer.status_code == 200 else f"{answer.status_code} {body}"


def sees(base: str) -> dict[str, bool]:
    return {
        f"{model}: {form}": answered(base, model, result).startswith("I see 1 image: image/png 4x3")
        for model in ("claude", "gpt")
        for form, result in FORMS.items()
    }


@needs_litellm
def test_in_front_of_litellm_the_proxy_makes_every_picture_seen(tmp_path: Path) -> None:
    with (
        serve_models(model_server()) as api,
        litellm(api, tmp_path) as between,
        proxy(f"{between}/v1", tmp_path) as front,
    ):
        alone, repaired = sees(between), sees(front)
    print(json.dumps(alone, indent=1))
    assert not all(alone.values()), "LiteLLM does not do it alone"
    assert [case for case, seen in repaired.items() if not seen] == []


@needs_litellm
def test_behind_litellm_the_proxy_comes_too_late_for_some(tmp_path: Path) -> None:
    with serve_models(model_server()) as api, proxy(api, tmp_path) as behind, litellm(behind, tmp_path) as front:
        late = sees(front)
    print(json.dumps(late, indent=1))
    assert not late["claude: MCP's blocks"]


def test_the_examples_proxy_goes_to_the_examples_litellm() -> None:
    settings = load_settings(EXAMPLE / "mcp-gateway.toml").settings
    assert settings.model_proxy.to == "http://127.0.0.1:4000/v1"
    assert "--host 127.0.0.1 --port 4000" in (EXAMPLE / "litellm.yaml").read_text("utf-8")
    assert base64.b64decode(PNG).startswith(b"\x89PNG")
