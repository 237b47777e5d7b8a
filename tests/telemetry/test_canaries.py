"""A secret wherever one can be configured, and a gateway that everything goes wrong with: nothing written has any."""

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

SERVERS = Path(__file__).parents[1] / "servers"
ROOT = Path(__file__).parents[2]
PATIENCE = 60
MARK = "canary"


class _Tells(BaseHTTPRequestHandler):
    """A server that answers each request with an error, and with all that it was sent."""

    def do_POST(self) -> None:
        body = f"{self.path} {dict(self.headers)}".encode()
        self.send_response(500, f"went wrong for {self.headers.get('Authorization')}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def telltale() -> Generator[str]:
    """The address of such a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tells)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


TELLS = """
import os, sys, traceback
print("my key is", os.environ["API_KEY"], "and", os.environ["KEYED"], os.environ["PEM_KEY"], file=sys.stderr)
def broken(key):
    raise RuntimeError(f"cannot use {key}")
broken(os.environ["COMMANDED"])
"""
"""An upstream that ends with a traceback full of secrets."""


def configuration(folder: Path, address: str) -> str:
    """The configuration, with a secret that begins with the mark wherever one can be."""
    (folder / "token").write_text("canary-file-token-0001\n", "utf-8")
    (folder / "pem").write_text("-----BEGIN KEY-----\ncanary-pem-line-0002\n-----END KEY-----\n", "utf-8")
    ring = {"mcp-gateway/keyed": "canary-keyring-0003"}
    (folder / "ring.json").write_text(json.dumps(ring), "utf-8")
    # In a file, because the command's own words can be seen by everybody.
    (folder / "vault.py").write_text("print('canary-' + 'command-0004')", "utf-8")
    vault = "${cmd:" + shlex.join([sys.executable, str(folder / "vault.py")]) + "}"
    (folder / "tells.py").write_text(TELLS, "utf-8")
    python = json.dumps(sys.executable)
    return f"""
[http]
token = "${{CANARY_VARIABLE}}"
[access.tokens.alice]
token = "${{file:token}}"
[model_proxy]
token = "canary-proxy-0006"
[store]
key = "canary-store-key-0007"
[content]
key = "canary-content-key-0008"
[describe.model]
url = "http://{address}/v1"
model = "some"
api_key = "canary-api-key-0009"
[audit]
path = "audit.jsonl"
arguments = "full"
[upstreams.pics]
command = {python}
args = [{json.dumps(str(SERVERS / "pictures_stdio.py"))}]
env = {{ API_TOKEN = "canary-env-0010" }}
[upstreams.tells]
command = {python}
args = [{json.dumps(str(folder / "tells.py"))}]
env = {{ API_KEY = "canary-env-0011", KEYED = "${{keyring:keyed}}", PEM_KEY = "${{file:pem}}", COMMANDED = '{vault}' }}
[upstreams.url]
url = "http://canary-user-0012:canary-pass-0013@{address}/mcp?key=canary-query-0014"
headers = {{ Authorization = "Bearer canary-header-0015", X-Custom = "canary-custom-0016" }}
[upstreams.absent]
url = "http://canary-user-0017:canary-pass-0018@127.0.0.1:9/sse?token=canary-query-0019"
transport = "sse"
"""


def processes_of(pid: int) -> Iterator[str]:
    """The command lines of a process and of all that it has started."""
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        try:
            yield " ".join(process.cmdline())
        except psutil.Error:
            continue


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_in_anything_that_is_written(serving, tmp_path, telltale, form):
    environ = {
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHON_KEYRING_BACKEND": "tests.keyring_file.FileKeyring",
        "KEYRING_FILE": str(tmp_path / "ring.json"),
        "CANARY_VARIABLE": "canary-variable-0005",
    }
    (tmp_path / "run").mkdir(mode=0o700)
    config = tmp_path / "gateway.toml"
    text = configuration(tmp_path, telltale)

    def command(*words: str) -> str:
        told = subprocess.run(
            [sys.executable, "-m", "gateway", *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), **environ},
            check=False,
        )
        assert told.stdout or told.stderr, words
        return told.stdout + told.stderr

    gateway = serving("--debug", "--log-format", form, whole=text, **environ)
    token = "canary-file-token-0001"
    answers = [
        gateway.call("pics__picture", {"password": "canary-argument-0020"}, token=token),
        gateway.call("pics__echo", {"nested": [{"api_key": "canary-argument-0021"}]}, token=token)["id"],
        gateway.call("pics__fail", token=token),
        gateway.call("tells__anything", token=token),
        gateway.call("url__anything", token=token),
        gateway.call("absent__anything", token=token),
        gateway.call("pics__picture", token="canary-wrong-0022"),
        gateway.get(f"/mcp?access_token={token}", Authorization="Bearer canary-wrong-0023"),
        gateway.get("/readyz", Authorization=f"Bearer {token}"),
        gateway.get("/metrics", Authorization="Bearer canary-variable-0005"),
    ]
    shown = [str(answer) for answer in answers]
    shown += processes_of(gateway.process.pid)
    shown += [
        command("status", "--json"),
        command("status"),
        command("doctor", "--config", str(config)),
        command("doctor", "--json", "--config", str(config)),
        command("config", "check", "--config", str(config)),
        command("token", "ls", "--config", str(config)),
        command("tools", "--config", str(config)),
        command("--debug", "call", "--config", str(config), "tells__anything"),
        command("audit", "show", "--config", str(config)),
        command("logs"),
    ]
    verified = command("audit", "verify", "--config", str(config))
    assert verified.count(": whole, ") == 2, verified  # of this gateway, and of the one of the command `call`
    shown.append(verified)
    config.write_text(text.replace("keyring:keyed", "keyring:gone") + '[gateway]\nprofile = "canary-0024"\n', "utf-8")
    shown += [command("reload"), command("status", "--json"), command("config", "check", "--config", str(config))]
    assert gateway.end() == 0
    shown += gateway.lines
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    configured = {config, *(tmp_path / name for name in ("token", "pem", "ring.json", "vault.py"))}
    assert any(path.name == "audit.jsonl" for path in written)
    assert any("log" in path.suffix for path in written), written
    shown += [path.read_text("utf-8", "replace") for path in written if path not in configured]
    # The profile of the refused configuration is no secret, and is named.
    found = [line for text in shown for line in text.splitlines() if MARK in line.replace("canary-0024", "")]
    assert not found
