"""`mcp-gateway serve` as a host meets it: a process of its own."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway._version import __version__
from tests.servers.certificates import write_certificate
from tests.servers.loopback import open_url

PATIENCE = 60

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


def call(process, name, arguments=None):
    process.send(id="call", method="tools/call", params={"name": name, "arguments": arguments or {}})
    return process.answer("call")["result"]


def test_a_host_on_stdio_gets_results_in_its_shape(start, pictures):
    process = start("serve", "--config", pictures())
    assert process.initialize("claude-code")["serverInfo"] == {"name": "mcp-gateway", "version": __version__}
    assert "pics__picture" in process.offered()
    assert [block["type"] for block in call(process, "pics__picture")["content"]] == ["text", "image"]


def test_the_profile_can_be_chosen_for_the_host(start, pictures):
    process = start("serve", "--config", pictures(), "--profile", "cline")
    process.initialize("claude-code")
    assert [block["type"] for block in call(process, "pics__picture")["content"]] == ["text"]


def test_the_model_behind_the_host_can_be_said_and_its_variant_is_in_force(start, pictures):
    process = start("serve", "--config", pictures(), "--profile", "qwen-code", "--model", "qwen3-coder-plus")
    process.initialize("claude-code")
    assert [block["type"] for block in call(process, "pics__picture")["content"]] == ["text"]


def test_the_configured_name_and_instructions_are_in_the_first_answer(start, pictures):
    config = pictures('[gateway]\nname = "mine"\ninstructions = "Ask."\n')
    process = start("serve", f"--config={config}")
    answer = process.initialize()
    assert (answer["serverInfo"]["name"], answer["instructions"]) == ("mine", "Ask.")


def test_an_upstream_is_named_on_the_command_line(start):
    server = Path(__file__).parents[1] / "servers" / "pictures_stdio.py"
    process = start("serve", "--", sys.executable, server)
    process.initialize()
    assert any(name.endswith("__picture") for name in process.offered())


def test_the_end_of_input_ends_the_gateway_and_its_upstreams(start, pictures):
    process = start("serve", "--config", pictures())
    process.initialize()
    upstream = int(call(process, "pics__pid")["content"][0]["text"])
    process.process.stdin.close()
    assert process.wait() == 0
    assert_gone(upstream)


@posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_gateway_and_its_upstreams(start, pictures, number, code):
    process = start("serve", "--config", pictures())
    process.initialize()
    upstream = int(call(process, "pics__pid")["content"][0]["text"])
    process.process.send_signal(number)
    assert process.wait() == code
    assert_gone(upstream)


def assert_gone(pid):
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", ["--profile", "codx"], "error: no profile is called 'codx' (did you mean 'codex'?)"),
        ("", ["--bogus"], "error: No such option: --bogus"),
        ("", ["htpp"], "'htpp' is not a program on PATH: did you mean --http? A server's command line goes after --"),
    ],
)
def test_a_start_that_cannot_be_is_one_line_on_stderr_and_nothing_on_stdout(start, tmp_path, text, arguments, message):
    path = tmp_path / "x.toml"
    path.write_text(text)
    process = start("serve", "--config", path, *arguments)
    assert process.wait() == 2
    said = process.rest(process.err)
    assert len(said) == 1
    assert message in said[0]
    assert process.rest(process.out) == []


@posix
def test_closed_standard_streams_are_an_error_in_one_line(start, pictures):
    command = f"exec {sys.executable} -m gateway serve --config {pictures()} <&-"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr.startswith("error: serve speaks over stdin and stdout")


def post(url, message, **headers):
    request = urllib.request.Request(
        url,
        json.dumps({"jsonrpc": "2.0", **message}).encode(),
        {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers},
    )
    with open_url(request, 60) as response:
        return response.status, response.read().decode()


@posix
def test_hosts_are_served_over_http_until_a_signal(start, pictures):
    process = start("serve", "--http", "--port", "0", "--config", pictures())
    line = process.line_with("listening on ")
    url = line.split()[2]
    assert url.startswith("http://127.0.0.1:")
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    status, body = post(f"{url}/codex", {"id": 1, "method": "initialize", "params": params})
    assert status == 200
    assert '"serverInfo"' in body
    process.process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


@posix
def test_tools_are_an_http_api_only_if_the_configuration_says_so(start, pictures):
    for settings, there in (("", False), ("[http]\nopenapi = true\n", True)):
        process = start("serve", "--http", "--port", "0", "--config", pictures(settings))
        base = process.line_with("listening on ").split()[2].removesuffix("/mcp")
        if not there:
            with pytest.raises(urllib.error.HTTPError, match="404"):
                open_url(f"{base}/openapi.json", 30)
            continue
        with open_url(f"{base}/openapi.json", 60) as answer:
            document = json.load(answer)
        path = next(path for path in document["paths"] if path.endswith("__picture"))
        request = urllib.request.Request(base + path, b"{}", {"Content-Type": "application/json"})
        with open_url(request, 60) as answer:
            result = json.load(answer)
        [image] = [block for block in result["content"] if block["type"] == "image"]
        with open_url(image["url"], 30) as answer:
            assert len(answer.read()) == image["size"]


@posix
def test_a_gateway_for_other_machines_says_by_which_names_it_is_reached(start, pictures):
    config = pictures('[http]\ntoken = "sesame"\nallowed_hosts = ["tools.example"]\n')
    process = start("serve", "--http", "--bind", "0.0.0.0", "--port", "0", "--config", config)
    line = process.line_with("reached by ")
    assert "any of its IP addresses" in line
    assert socket.gethostname().lower() in line
    assert "tools.example" in line
    assert "[http] allowed_hosts" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bind", "0.0.0.0"], "error: http.bind: 0.0.0.0 can be reached from other machines, so a token is needed"),
        (["--profile", "codx"], "error: no profile is called 'codx' (did you mean 'codex'?)"),
    ],
)
def test_http_that_cannot_be_is_one_line_before_anything_is_started(start, pictures, arguments, message):
    process = start("serve", "--http", "--config", pictures(), *arguments)
    assert process.wait() == 2
    said = process.rest(process.err)
    assert len(said) == 1
    assert said[0].startswith(message)


def test_nothing_heavy_is_imported_before_the_host_is_answered():
    heavy = "{'pydantic', 'mcp', 'typer', 'rich', 'anyio', 'asyncio', 'starlette', 'gateway.config.schema'}"
    code = (
        "import sys\n"
        "from gateway.serving.mcp import early_stdio\n"
        "def start(self):\n"
        f"    print(sorted({heavy} & set(sys.modules)), file=sys.stderr)\n"
        "    raise SystemExit(0)\n"
        "early_stdio.EarlyStdio.start = start\n"
        "from gateway.cli.main import main\n"
        "main(['serve'])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stderr == "[]\n"


@posix
def test_in_a_terminal_it_says_that_it_waits_for_a_host_and_ends_with_the_input(pictures):
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "gateway", "serve", "--config", pictures()]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        try:
            hint = [process.stderr.readline().rstrip("\n") for _ in range(5)]
            assert hint[0] == "Waiting for a host on stdin: hosts start it themselves. Ctrl-D ends it."
            assert [line.split("  ")[1] for line in hint[2:]] == [
                "mcp-gateway install HOST",
                "mcp-gateway serve --http",
                "mcp-gateway tools",
            ]
            os.write(ours, b"\x04")
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(ours)
        assert (process.returncode, out) == (0, "")


def test_a_cluster_is_not_joined_over_stdio_and_the_log_says_so_once(start, pictures):
    file = pictures()
    file.write_text(f'[cluster]\nurl = "redis://127.0.0.1:1"\n{file.read_text()}')
    process = start("serve", "--config", file)
    process.initialize()
    process.offered()
    process.process.stdin.close()
    said = [line for line in process.rest(process.err) if "[cluster]" in line]
    assert len(said) == 1
    assert "[cluster] is not used over stdio" in said[0]


def test_a_host_on_a_pipe_is_told_nothing_of_it(start, pictures):
    process = start("serve", "--config", pictures())
    process.initialize()
    process.process.stdin.close()
    assert process.wait() == 0
    assert not [line for line in process.rest(process.err) if "Waiting for a host" in line]


def test_a_port_that_another_gateway_has_is_refused_with_how_to_see_and_end_it(start, command, pictures):
    config = pictures()
    first = start("serve", "--http", "--port", "0", "--config", config)
    port = int(first.line_with("listening on").split("127.0.0.1:")[1].split("/")[0])
    for words in (("serve", "--http"), ("proxy", "--to", "http://127.0.0.1:9")):
        ended = start(*words, "--port", str(port), "--config", config)
        error = ended.line_with("error: ")
        assert ended.wait() == 2
        assert f"cannot listen on 127.0.0.1 port {port}" in error
        assert f"the gateway 'mcp-gateway' (process {first.process.pid}, {config}) has it" in error
        assert f"`mcp-gateway stop --pid {first.process.pid}` ends it" in error
        assert "--port 0 on any that is free" in error
    assert command("stop", "--pid", str(first.process.pid)).code == 0


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS tells only the superuser")
def test_a_port_that_another_program_has_is_refused_with_its_name(start, pictures):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = start("serve", "--http", "--port", str(port), "--config", pictures())
        error = ended.line_with("error: ")
        assert ended.wait() == 2
    assert f"(process {os.getpid()}) has it" in error
    assert "mcp-gateway stop" not in error


def test_every_one_of_many_tls_connections_at_once_is_served(start, tmp_path):
    certificate, key = write_certificate(tmp_path)
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(f"[http]\ntls_certificate = {json.dumps(str(certificate))}\ntls_key = {json.dumps(str(key))}\n")
    process = start("serve", "--http", "--port", "0", "--config", config)
    port = int(process.line_with("listening on https://").partition("https://127.0.0.1:")[2].partition("/")[0])
    context = ssl.create_default_context(cafile=certificate)

    def handshake(_: int) -> str | None:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as connection,
            context.wrap_socket(connection, server_hostname="127.0.0.1") as secured,
        ):
            return secured.version()

    with ThreadPoolExecutor(10) as threads:
        assert set(threads.map(handshake, range(100))) <= {"TLSv1.3", "TLSv1.2"}
