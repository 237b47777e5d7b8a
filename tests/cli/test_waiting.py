"""Commands that start upstreams: what they wait for, what they show meanwhile, and what they start at all."""

import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

SERVERS = Path(__file__).parents[1] / "servers"
PATIENCE = 60
LONG = 'env = { FAKE_ROLLING_BACK = "8",'

posix = pytest.mark.skipif(sys.platform == "win32", reason="terminals and scripts of POSIX")


@pytest.fixture(autouse=True)
def remembering(tmp_path, monkeypatch):
    """What upstreams list is remembered from one command to the next."""
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def scripted(tmp_path):
    """Write an upstream's table for a server with tools of these names; it may be written again."""

    def write(upstream: str, *names: str) -> str:
        script = tmp_path / f"{upstream}.json"
        tools = [{"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} for name in names]
        results = {name: {"content": [{"type": "text", "text": f"{upstream} did {name}"}]} for name in names}
        script.write_text(json.dumps({"tools": tools, "results": results}))
        arguments = json.dumps([str(SERVERS / "scripted_stdio.py"), str(script)])
        return f"[upstreams.{upstream}]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"

    return write


@pytest.fixture
def configured(tmp_path):
    def write(*tables: str) -> Path:
        path = tmp_path / "mcp-gateway.toml"
        path.write_text("".join(tables))
        return path

    return write


@pytest.fixture
def traced(tmp_path):
    """The table of an upstream that leaves a file behind when it is started, and never answers."""

    def write(upstream: str) -> str:
        script = f"open({str(tmp_path / upstream)!r}, 'w').close(); import time; time.sleep(600)"
        return f"[upstreams.{upstream}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(['-c', script])}\n"

    write.started = lambda upstream: (tmp_path / upstream).exists()
    return write


@pytest.fixture
def npx(tmp_path):
    """The table of an upstream behind the stand-in for npx; its cache."""
    cache, programs = tmp_path / "npm", tmp_path / "programs"
    cache.mkdir()
    programs.mkdir()
    fake = f"{shlex.quote(sys.executable)} {shlex.quote(str(SERVERS / 'fake_npx.py'))}"
    (programs / "npx").write_text(f'#!/bin/sh\nexec {fake} "$@"\n')
    (programs / "npx").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    env = f"env = {{ FAKE_CACHE = {json.dumps(str(cache))}, PATH = {json.dumps(path)} }}\n"

    def table(name: str) -> str:
        return f'[upstreams.{name}]\ncommand = "npx"\nargs = ["-y", "{name}"]\n{env}'

    table.cache = cache
    return table


class Terminal:
    """A command with a terminal of 80 columns for its stderr."""

    def __init__(self, *arguments: str) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = [sys.executable, "-m", "gateway", *map(str, arguments)]
        environment = {**os.environ, "TERM": "xterm"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment, text=True)
        os.close(slave)
        self._seen, self._news = "", threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._master, 65_536)
            except OSError:  # the other side is closed
                break
            with self._news:
                self._seen += chunk.decode("utf-8", "replace")
                self._news.notify_all()

    @property
    def shown(self) -> str:
        """What was written to the terminal so far, without its control sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._seen)

    @property
    def left(self) -> list[str]:
        """The lines that remain, without what was drawn over."""
        screen: list[str] = [""]
        for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", self._seen):
            if piece == "\n":
                screen.append("")
            elif piece.endswith("A") and piece.startswith("\x1b["):
                del screen[len(screen) - int(piece[2:-1] or 1) :]
            elif piece.startswith("\x1b[") and piece.endswith("K"):
                screen[-1] = ""
            elif piece[0] not in "\x1b\r":
                screen[-1] += piece
        return [line for line in screen if line]

    def until(self, pattern: str) -> re.Match[str]:
        with self._news:
            found = self._news.wait_for(lambda: re.search(pattern, self.shown), PATIENCE)
        assert found, self.shown
        return found

    def ended(self) -> tuple[int, str]:
        out = self.process.communicate(timeout=PATIENCE)[0]
        return self.process.returncode, out


@pytest.fixture
def terminal():
    started: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        started.append(Terminal(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        one.process.stdout.close()


class HttpHost:
    """A host over Streamable HTTP whose requests wait in threads of their own."""

    def __init__(self, url: str, era: str) -> None:
        self._url, self._headers, self._meta = url, {}, {}
        self._pool = ThreadPoolExecutor()
        client = {"name": "waiting", "version": "1"}
        if era == "modern":
            self._headers = {"MCP-Protocol-Version": "2026-07-28"}
            prefix = "io.modelcontextprotocol/"
            meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": client}
            self._meta = {"_meta": {prefix + key: value for key, value in meta.items()}}
        else:
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            with closing(self._sent({"id": 0, "method": "initialize", "params": params})) as connection:
                answer = connection.getresponse()
                answer.read()
            self._headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
            with closing(self._sent({"method": "notifications/initialized"})) as connection:
                connection.getresponse().read()

    def _sent(self, message: dict) -> http.client.HTTPConnection:
        parts = urlsplit(self._url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if "method" in message and message["method"].startswith("tools/"):
            headers["Mcp-Method"] = message["method"]
            headers |= {"Mcp-Name": message["params"]["name"]} if "name" in message["params"] else {}
        body = json.dumps({"jsonrpc": "2.0", **message})
        connection.request("POST", parts.path, body, {**headers, **self._headers})
        return connection

    def later(self, method: str, **params) -> "Future[dict]":
        """The answer to a request that is sent now."""
        connection = self._sent({"id": method, "method": method, "params": {**params, **self._meta}})

        def read() -> dict:
            with closing(connection):
                body = connection.getresponse().read().decode()
            lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith(("data: {", "{"))]
            return json.loads(lines[-1])

        return self._pool.submit(read)


def names(listed) -> list[str]:
    return [tool["name"] for tool in listed["tools"] if not tool["name"].startswith("gateway_")]


# -- tools


def test_a_second_listing_is_as_true_as_the_first(command, scripted, configured):
    config = configured(scripted("a", "old"))
    assert names(command("tools", "--config", config, "--json").json()) == ["a__old"]
    scripted("a", "new")
    ended = command("tools", "--config", config, "--json")
    assert (ended.code, ended.err) == (0, "")
    assert names(ended.json()) == ["a__new"]
    assert ended.json()["remembered"] == []


def test_what_is_only_remembered_is_marked(command, scripted, configured, tmp_path):
    config = configured(scripted("a", "one"), scripted("b", "two"))
    assert command("tools", "--config", config).code == 0
    (tmp_path / "a.json").unlink()
    listed = command("tools", "--config", config, "--json")
    assert listed.code == 3
    assert names(listed.json()) == ["a__one", "b__two"]
    assert listed.json()["remembered"] == ["a__one"]
    assert listed.json()["missing"]["a"].startswith("failed: exited with code 1")
    shown = command("tools", "--config", config)
    assert re.search(r"^a__one +\(as last known\) Does one\.$", shown.out, re.MULTILINE)
    assert re.search(r"^b__two +Does two\.$", shown.out, re.MULTILINE)


@posix
@pytest.mark.timeout(120)
def test_a_terminal_shows_how_upstreams_are_doing_and_a_ctrl_c_lists_what_is_there(terminal, scripted, configured, npx):
    window = terminal("tools", "--config", configured(scripted("quick", "one"), npx("slow")))
    window.until(r"waiting for 1 of 2 upstreams, \d+ s \(Ctrl-C: list what is there\)")
    window.until(r"  slow   installing for \d+ s: npx may have to install it first")
    window.until(r"  quick  ready")
    window.process.send_signal(signal.SIGINT)
    code, out = window.ended()
    assert code == 3
    assert "quick__one" in out
    assert re.search(r"upstream slow: installing for \d+ s: npx may have to install it first", window.shown)
    assert max(map(len, window.shown.replace("\r", "\n").splitlines())) <= 80 + len("error: ")
    assert (npx.cache / "log").read_text().splitlines()[-1] == "rolled back slow"


@posix
@pytest.mark.timeout(120)
def test_one_that_has_failed_is_told_by_that_though_it_is_tried_again(terminal, configured, npx, traced):
    (npx.cache / "again.lock").touch()
    window = terminal("tools", "--config", configured(npx("again"), traced("mute")))
    window.until(r"  again  failed: exited with code 1: npm error ENOTEMPTY")
    (npx.cache / "again.lock").unlink()
    window.until(r"it is being tried again: npx may have to install it first")
    window.process.send_signal(signal.SIGINT)
    assert window.ended()[0] == 3
    assert "error: upstream again: failed: exited with code 1: npm error ENOTEMPTY" in window.shown.replace("\r\n", "")
    assert "error: upstream mute: starting for " in window.shown


@posix
def test_a_ctrl_c_ends_a_call_that_waits(terminal, traced, configured):
    window = terminal("call", "a__x", "--config", configured(traced("a")))
    window.until(r"waiting for 1 of 1 upstream,")
    window.process.send_signal(signal.SIGINT)
    assert window.ended() == (130, "")
    assert window.left == ["interrupted"]


@posix
@pytest.mark.parametrize("command", [["call", "a__x"], ["read", "ui://a/x"], ["check", "a"], ["doctor"]])
def test_a_ctrl_c_ends_a_command_and_what_it_started_in_one_line(terminal, configured, tmp_path, command):
    pid = tmp_path / "pid"
    script = f"import os, pathlib, time; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(3600)"
    table = f"[upstreams.a]\ncommand = {json.dumps(sys.executable)}\nargs = ['-c', {json.dumps(script)}]\n"
    window = terminal(*command, "--config", configured(table))
    while not (pid.exists() and pid.read_text()):
        assert window.process.poll() is None, window.shown
    window.process.send_signal(signal.SIGINT)
    if command == ["doctor"]:  # the first ends only the waiting
        window.process.send_signal(signal.SIGINT)
    code, _ = window.ended()
    assert "Traceback" not in window.shown
    assert not psutil.pid_exists(int(pid.read_text()))
    if command != ["doctor"]:
        before = "connecting to a"  # is announced once it has taken a while, on a slow machine
        assert (code, [line for line in window.left if line != before]) == (130, ["interrupted"])


@posix
def test_a_ctrl_c_while_modules_are_imported_ends_the_command(configured, traced, tmp_path):
    # Where Python is inside of an import at the signal differs: `-X importtime` says on stderr what has been imported.
    config = configured(traced("a"))
    for module in ("gateway.cli.lean_packages", "gateway.config.schema", "anyio"):
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "gateway", "tools", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            seen = next(line for line in process.stderr if line.rstrip().endswith(f" {module}"))
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            assert (process.wait(PATIENCE), process.stdout.read()) == (130, ""), seen
        assert "Traceback" not in rest


@posix
def test_programs_are_shown_nothing(terminal, scripted, configured):
    window = terminal("tools", "--json", "--config", configured(scripted("a", "one")))
    code, out = window.ended()
    assert (code, window.shown) == (0, "")
    assert names(json.loads(out)) == ["a__one"]


@posix
@pytest.mark.timeout(120)
@pytest.mark.parametrize("words", [("tools",), ("read", "file:///x"), ("call", "one__ping"), ("doctor",)])
def test_without_a_terminal_what_is_waited_for_is_one_line(start, configured, npx, words):
    process = start(*words, "--config", configured(npx("one"), npx("other")))
    line = process.err.get(timeout=PATIENCE)
    names = "'one'" if words[0] == "call" else "('one', (then )?'other'|'other', then 'one')"
    assert re.fullmatch(rf"starting {names}, which may take minutes where something has to be installed", line)
    for name in ("one", "other"):
        (npx.cache / f"{name}.go").touch()
    process.wait()
    assert not [line for line in process.rest(process.err) if "starting" in line]


@posix
@pytest.mark.timeout(120)
def test_a_launcher_that_has_started_before_is_said_to_install_only_when_it_takes_long(start, configured, npx):
    config = configured(npx("one"))
    (npx.cache / "one.go").touch()
    start("tools", "--config", config).wait()
    for ending in ("go", "installed"):
        (npx.cache / f"one.{ending}").unlink()
    (npx.cache / "one.silent").touch()  # a child of it would be taken for the server
    process = start("tools", "--config", config)
    assert process.err.get(timeout=PATIENCE) == "starting 'one'"
    words = r"still starting 'one', \d+ s, which may take minutes where something has to be installed again"
    assert re.fullmatch(words, process.err.get(timeout=PATIENCE))
    (npx.cache / "one.go").touch()
    process.wait()


@posix
def test_without_a_terminal_a_slow_call_is_said_to_run(start, configured):
    arguments = json.dumps([str(SERVERS / "raw_stdio.py")])
    table = f"[upstreams.raw]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"
    process = start("call", "raw__hang", "--config", configured(table))
    assert process.line_with("calling") == "calling raw__hang"
    process.process.send_signal(signal.SIGINT)
    assert process.wait() == 130


@posix
@pytest.mark.timeout(120)
def test_programs_are_announced_nothing(start, configured, npx):
    process = start("tools", "--json", "--config", configured(npx("one")))
    while not (npx.cache / "log").exists():
        time.sleep(0.05)
    time.sleep(1.5)  # longer than it takes until people are told
    (npx.cache / "one.go").touch()
    assert process.wait() == 0
    assert process.rest(process.err) == []


# -- call


def test_a_call_starts_the_upstream_of_its_prefix_and_no_other(command, scripted, configured, traced):
    config = configured(traced("b"), scripted("a", "one"), traced("c"))
    ended = command("call", "a__one", "--config", config)
    assert (ended.code, ended.err) == (0, "")
    assert "a did one" in ended.out
    assert not traced.started("b")
    assert not traced.started("c")


def test_a_call_without_prefixes_starts_the_one_that_has_the_tool_as_last_known(command, scripted, configured):
    head = '[gateway]\nprefix = "when-needed"\n'
    assert command("tools", "--config", configured(head, scripted("a", "one", "both"), scripted("z", "both"))).code == 0
    config = configured(head, scripted("a", "one", "both"), scripted("z", "both"))
    (config.parent / "z.json").unlink()  # it would fail
    ended = command("call", "one", "--config", config)
    assert (ended.code, ended.err) == (0, "")
    assert "a did one" in ended.out
    assert "a did both" in command("call", "a__both", "--config", config).out
    failed = command("call", "z__both", "--config", config)
    assert failed.code == 3
    assert "upstream 'z': is not available: exited with code 1" in failed.err


def test_a_call_of_what_nobody_is_known_to_have_starts_all(command, scripted, configured):
    config = configured('[gateway]\nprefix = "never"\n', scripted("a", "one"), scripted("b", "two"))
    assert "b did two" in command("call", "two", "--config", config).out


def test_a_call_of_a_tool_that_was_renamed_says_so(command, scripted, configured):
    config = configured(scripted("a", "picture"))
    assert command("tools", "--config", config).code == 0
    scripted("a", "pictures")
    ended = command("call", "a__picture", "--config", config)
    assert ended.code == 2
    assert "there is no tool named 'a__picture'; the nearest: 'a__pictures'" in ended.err
    assert "a did pictures" in command("call", "a__pictures", "--config", config).out


def test_a_call_of_a_tool_that_is_new_finds_it(command, scripted, configured):
    config = configured(scripted("a", "old"))
    assert command("tools", "--config", config).code == 0
    scripted("a", "old", "new")
    assert "a did new" in command("call", "a__new", "--config", config).out


# -- a host meanwhile


@posix
@pytest.mark.timeout(120)
def test_a_host_that_comes_while_one_installs_gets_the_others_and_is_told(
    start, command, scripted, configured, npx, monkeypatch
):
    monkeypatch.setenv("MCP_GATEWAY_CONFIG", "")
    gateway = start("serve", "--config", configured(scripted("quick", "one"), npx("slow")))
    gateway.initialize()
    gateway.send(id="first", method="tools/list")
    first = names(gateway.answer("first")["result"])
    assert first == ["quick__one"]
    while (slow := command("status", "--json").json()["gateways"][0]["upstreams"][1])["state"] != "installing":
        assert slow["state"] == "starting"
    assert slow["cause"] == "npx may have to install it first"
    assert re.search(r"^slow +installing +\d+ s ", command("status").out, re.MULTILINE)
    (npx.cache / "slow.go").touch()
    while json.loads(line := gateway.out.get(timeout=PATIENCE)).get("method") != "notifications/tools/list_changed":
        assert line is not None
    gateway.send(id="second", method="tools/list")
    assert "slow__odd" in names(gateway.answer("second")["result"])


@posix
@pytest.mark.timeout(120)
@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_ctrl_c_answers_hosts_that_wait_over_http_and_leaves_no_traceback(start, scripted, configured, npx, era):
    # Ended gently, the launcher takes longer to end than requests are given, as npm does in a slow network.
    tables = (scripted("quick", "one"), npx("slow").replace("env = {", LONG))
    gateway = start("serve", "--http", "--port", "0", "--log-level", "debug", "--config", configured(*tables))
    host = HttpHost(gateway.line_with("listening on ").split()[2] + "/data-designer", era)  # which waits for long
    gateway.line_with("upstream slow: installing")
    listed = host.later("tools/list")
    gateway.line_with("]: tools/list")
    called = host.later("tools/call", name="slow__odd", arguments={})
    gateway.line_with("]: tools/call")
    gateway.process.send_signal(signal.SIGINT)
    assert names(listed.result(PATIENCE)["result"]) == ["quick__one"]
    # A gateway that is told to stop lets requests end: this one waits as long as it would have.
    assert "the upstream is installing" in called.result(PATIENCE)["result"]["content"][0]["text"]
    assert gateway.wait() == 130
    assert not [line for line in gateway.rest(gateway.err) if "Traceback" in line or " ERROR " in line]
    assert (npx.cache / "log").read_text().splitlines()[-1] == "rolled back slow"


@posix
@pytest.mark.timeout(120)
def test_a_second_ctrl_c_ends_it_without_a_traceback(start, configured, npx):
    gateway = start("serve", "--http", "--port", "0", "--config", configured(npx("slow").replace("env = {", LONG)))
    gateway.line_with("upstream slow: installing")
    gateway.process.send_signal(signal.SIGINT)
    while "asked slow" not in (npx.cache / "log").read_text():  # the first is being followed
        time.sleep(0.02)
    gateway.process.send_signal(signal.SIGINT)
    assert gateway.wait() == 130
    assert not [line for line in gateway.rest(gateway.err) if "Traceback" in line or "KeyboardInterrupt" in line]


@posix
@pytest.mark.timeout(120)
def test_what_becomes_of_each_upstream_is_a_line_of_the_log(start, scripted, configured, npx):
    broken = '[upstreams.broken]\ncommand = "no-such-command"\n'
    gateway = start(
        "serve", "--http", "--port", "0", "--config", configured(scripted("quick", "one"), broken, npx("a"))
    )
    told = "".join(gateway.line_with("upstream ") + "\n" for _ in range(3))
    assert " INFO gateway.upstream.connection.supervised_connection: upstream quick: ready, 1 tool\n" in told
    assert "upstream broken: failed: the command 'no-such-command' was not found (install it, check PATH, " in told
    where = " INFO gateway.upstream.connection.supervised_connection: "
    assert f"{where}upstream a: installing: npx may have to install it first\n" in told
    (npx.cache / "a.go").touch()
    assert re.search(r"upstream a: ready, \d+ tools$", gateway.line_with("upstream a: "))


# -- doctor


def test_what_doctor_has_learned_is_remembered(command, scripted, configured, tmp_path):
    config = configured(scripted("a", "one"), scripted("b", "two"))
    assert command("doctor", "--config", config).code in (0, 1)  # as the rest of this machine is
    (tmp_path / "a.json").unlink()
    listed = command("tools", "--config", config, "--json").json()
    assert (names(listed), listed["remembered"]) == (["a__one", "b__two"], ["a__one"])


def test_doctor_judges_nothing_that_is_only_remembered(command, scripted, configured, tmp_path):
    small = '[profiles.small]\nextends = "default"\nsets.tools = { max_tools = 1, helpers = false }\n'
    config = configured(scripted("a", "one", "two"), small)

    def beyond() -> list[str]:
        found = command("doctor", "--config", config, "--host", "small", "--json").json()["findings"]
        return [finding["text"] for finding in found if "beyond the host's limit" in finding["text"]]

    assert beyond()
    (tmp_path / "a.json").unlink()
    assert beyond() == []


@posix
@pytest.mark.timeout(120)
def test_doctor_does_not_count_the_time_that_one_waited_for_another_as_its_own(terminal, configured, npx):
    for name in ("one", "other"):  # after a while in which the first of them does nothing, the second has its turn
        (npx.cache / f"{name}.silent").touch()
    window = terminal("doctor", "--config", configured(npx("one"), npx("other")))
    second = window.until(r"  (\w+) +waits for its turn \(npx\), for \d+ s")[1]
    window.until(rf"  {second} +installing for")
    for name in ("one", "other"):
        (npx.cache / f"{name}.go").touch()
    _, out = window.ended()
    found = re.search(rf"upstream {second}\n +ok +ready after ([\d.]+) s, and (\d+) s of waiting for its turn", out)
    assert found, out
    assert int(found[2]) >= 4


@posix
@pytest.mark.timeout(120)
def test_doctor_shows_what_it_waits_for_and_a_ctrl_c_has_it_go_on(terminal, scripted, configured, npx):
    window = terminal("doctor", "--config", configured(scripted("quick", "one"), npx("slow")))
    window.until(r"  slow   installing for \d+ s: npx may have to install it first")
    window.process.send_signal(signal.SIGINT)
    code, out = window.ended()
    assert code in (0, 1)  # as the rest of this machine is
    assert re.search(r"warning +installing for \d+ s: npx may have to install it first", out)
    assert "-> run mcp-gateway doctor again, and let it wait" in out
    assert re.search(r"ok +ready after [\d.]+ s: scripted 1, stdio", out)
