"""Four times as many hosts as the gateway takes at once: who gets in is served as ever, the others are told so."""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.serving.access.tokens import hash_of
from tests.attack.conftest import ROOT, Attacked, Client, Start, weighed

AT_ONCE = 8
SECONDS = 0.2
TOKENS = {"greedy": "mcpg_greedy_0123456789", "modest": "mcpg_modest_0123456789"}

SLEEPER = f"""
import json, sys, threading, time

done, writing = 0, threading.Lock()

def say(message, result):
    with writing:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)

def work(message):
    global done
    if message["params"]["name"] == "count":
        return say(message, {{"content": [{{"type": "text", "text": str(done)}}]}})
    done += 1
    time.sleep({SECONDS})
    say(message, {{"content": [{{"type": "text", "text": "slept"}}]}})

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    if message["method"] == "initialize":
        server = {{"name": "sleeper", "version": "1"}}
        version = message["params"]["protocolVersion"]
        say(message, {{"protocolVersion": version, "capabilities": {{"tools": {{}}}}, "serverInfo": server}})
    elif message["method"] == "tools/list":
        schema = {{"type": "object"}}
        say(message, {{"tools": [{{"name": name, "inputSchema": schema}} for name in ("sleep", "count")]}})
    elif message["method"] == "tools/call":
        threading.Thread(target=work, args=(message,), daemon=True).start()
    else:
        say(message, {{}})
"""

SHARED = 'session = "shared"'
"""One process for all hosts: what is measured is not the start of more of them."""

CONFIG = f"""
[overload]
calls_at_once = {AT_ONCE}
"""


@dataclass
class Load:
    """What became of the calls of some hosts: seconds of those that were served, and answers of the others."""

    seconds: list[float] = field(default_factory=list[float])
    refused: Counter[int] = field(default_factory=Counter[int])
    odd: list[str] = field(default_factory=list[str])

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ask(self, host: Client, tool: str = "sleeper__sleep") -> None:
        """Call once, as a host does that tries again soon (in less time than it is asked to wait)."""
        message = {"jsonrpc": "2.0", "id": 1_000, "method": "tools/call"}
        message["params"] = host._params({"name": tool, "arguments": {}})  # type: ignore[assignment]
        began = time.monotonic()
        status, text = host.send(message)
        if status == 200 and "slept" in text:
            self.seconds.append(time.monotonic() - began)
        elif status in (429, 503) and host.retry_after and json.loads(text)["error"]["data"]["retryAfter"] >= 1:
            self.refused[status] += 1
            time.sleep(0.05)
        else:
            self.odd.append(f"{status} {text[:200]}")


@contextmanager
def calling(hosts: list[Client], load: Load) -> Iterator[None]:
    """While this is open, each of the hosts calls again and again; each ends with an answer."""
    done = threading.Event()

    def go_on(host: Client) -> None:
        while not done.is_set():
            load.ask(host)

    threads = [threading.Thread(target=go_on, args=(host,), daemon=True) for host in hosts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
        for host in hosts:
            host.close()
    assert not any(thread.is_alive() for thread in threads)


def metrics(gateway: Attacked, name: str, host: Client) -> float:
    """The sum of a metric's samples."""
    host._connection.request("GET", "/metrics", headers=gateway.headers)
    text = host._connection.getresponse().read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("modern", [True, False])
def test_four_times_too_many_hosts(attacked: Start, modern: bool) -> None:
    gateway = attacked({"sleeper": SLEEPER}, config=CONFIG, more={"sleeper": SHARED})
    normal, overload = Load(), Load()
    with closing(gateway.client("observer")) as observer, weighed(gateway.process) as memory:
        observer.tools()
        with calling([gateway.client(modern=modern) for _ in range(AT_ONCE)], normal):
            until(lambda: len(normal.seconds) >= 5 * AT_ONCE)
        with calling([gateway.client(modern=modern) for _ in range(4 * AT_ONCE)], overload):
            until(lambda: len(overload.seconds) >= 10 * AT_ONCE and sum(overload.refused.values()) >= 20)
        done = int(observer.call("sleeper__count")["content"][0]["text"])
        counted = metrics(gateway, "mcp_gateway_requests_refused_total", observer)
    refused = sum(overload.refused.values()) + sum(normal.refused.values())
    print(
        f"attack {4 * AT_ONCE} hosts for {AT_ONCE} places: {len(overload.seconds)} served in {overload.median:.2f} s "
        f"(normally {normal.median:.2f} s), {max(overload.seconds):.2f} s at most, {refused} refused; {memory}"
    )
    assert normal.odd == overload.odd == []
    assert set(overload.refused) == {503}  # all are of one principal
    assert not normal.refused
    assert overload.median <= 2 * normal.median
    assert memory.growth < 100 * 2**20
    # Whatever the upstream did was heard of by a host, and nothing was refused that nobody counted.
    assert done == len(normal.seconds) + len(overload.seconds)
    assert counted == refused
    assert any("refused since the last such line" in line for line in gateway.said)


def test_whoever_asks_too_much_is_refused_and_not_the_others(attacked: Start) -> None:
    tokens = "".join(f'[access.tokens.{name}]\nhash = "{hash_of(token)}"\n' for name, token in TOKENS.items())
    gateway = attacked({"sleeper": SLEEPER}, config=CONFIG + tokens, more={"sleeper": SHARED})
    greedy, modest = Load(), Load()
    headers = {name: {"authorization": f"Bearer {token}"} for name, token in TOKENS.items()}
    many = [gateway.client(headers=headers["greedy"], modern=True) for _ in range(4 * AT_ONCE)]
    modest_host = gateway.client("modest", headers=headers["modest"], modern=True)
    with closing(modest_host) as host, weighed(gateway.process) as memory, calling(many, greedy):
        until(lambda: sum(greedy.refused.values()) >= 20)
        for _ in range(15):
            modest.ask(host)
    print(
        f"attack one principal for all places: another was served in {modest.median:.2f} s, "
        f"{max(modest.seconds):.2f} s at most, {sum(modest.refused.values())} refused; {memory}"
    )
    assert greedy.odd == modest.odd == []
    assert not modest.refused
    assert modest.median <= 2 * SECONDS + 0.2
    assert memory.growth < 100 * 2**20
    assert greedy.refused[429] + greedy.refused[503] > 15
    assert greedy.refused[429] > 0  # while the other waited, or was worked on, it was the greedy one's own doing


@pytest.mark.parametrize("modern", [True, False])
def test_an_upstream_that_is_asked_too_much_by_many(attacked: Start, modern: bool) -> None:
    limits = f"{SHARED}\nlimits = {{ calls = 2, queue = 2 }}"
    gateway = attacked({"sleeper": SLEEPER}, more={"sleeper": limits})
    answers = list[str]()

    def ask() -> None:
        with closing(gateway.client(modern=modern)) as host:
            message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
            status, text = host.send(message | {"params": host._params({"name": "sleeper__sleep", "arguments": {}})})
            answers.append("served" if "slept" in text else f"{status} {host.retry_after} {text}")

    with closing(gateway.client()) as observer:
        observer.tools()
    threads = [threading.Thread(target=ask, daemon=True) for _ in range(12)]
    with gateway.watched() as watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert watch.failures == []
    assert watch.longest < 5
    assert watch.growth < 100 * 2**20
    refused = [answer for answer in answers if answer != "served"]
    assert 4 <= answers.count("served") < len(answers) == 12
    # A stream has begun in the older era, so its answer is an error; in the newer one, it still has a status.
    assert all(answer.startswith("503 1 " if modern else "200 None ") for answer in refused)
    assert all('"retryAfter":1' in answer and "2 calls wait for it already" in answer for answer in refused)


def test_without_memory_nothing_new_is_begun_and_the_load_balancer_is_told(attacked: Start) -> None:
    gateway = attacked(config='[overload]\nmemory = "40MB"')  # less than a gateway takes when it has just begun
    with closing(gateway.client(modern=True)) as host, weighed(gateway.process) as memory:
        began = time.monotonic()
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
        status, text = host.send(message | {"params": host._params({"name": "bystander__ping", "arguments": {}})})
        assert (status, host.retry_after) == (503, "1")
        assert json.loads(text)["error"]["message"] == "the gateway is short of memory (try again in 1 s)"
        host._connection.request("GET", "/readyz")
        response = host._connection.getresponse()
        assert response.status == 503
        told = json.loads(response.read())
        assert (told["ready"], told["reason"]) == (False, "memory")
        host._connection.request("GET", "/healthz")
        assert host._connection.getresponse().read() == b"ok\n"
        waited = time.monotonic() - began
    print(f"attack without memory: all others are refused as well, and were told in {waited:.2f} s; {memory}")
    assert waited < 5
    assert memory.growth < 50 * 2**20
    said = "".join(gateway.said)
    assert "memory is nearly used up" in said
    assert "of 40 MB are in use; new requests are refused" in said


def test_a_host_on_stdio_hears_of_each_call_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER, "utf-8")
    upstream = f'[upstreams.sleeper]\ncommand = {json.dumps(sys.executable)}\nargs = ["sleeper.py"]\n'
    (tmp_path / "mcp-gateway.toml").write_text(f"[overload]\ncalls_at_once = 2\nqueue = 1\n{upstream}", "utf-8")
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}}
    asked = [{"id": 0, "method": "initialize", "params": info}, {"method": "notifications/initialized"}]
    asked.append({"id": 1, "method": "tools/list"})
    call = {"method": "tools/call", "params": {"name": "sleeper__sleep", "arguments": {}}}
    command = [sys.executable, "-m", "gateway", "serve", "--config", "mcp-gateway.toml"]
    environ = {**os.environ, "MCP_GATEWAY_CACHE": "", "PYTHONPATH": str(ROOT)}
    options: dict[str, Any] = {"cwd": tmp_path, "env": environ, "text": True, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options) as host:
        assert host.stdin is not None
        assert host.stdout is not None

        def answers(messages: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
            host.stdin.writelines(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
            host.stdin.flush()
            found: dict[int, dict[str, Any]] = {}
            while len(found) < sum("id" in message for message in messages):
                message = json.loads(host.stdout.readline())
                if "id" in message:
                    found[message["id"]] = message
            return found

        answers(asked)
        began = time.monotonic()
        with weighed(host) as memory:
            said = list(answers([{"id": 10 + number, **call} for number in range(8)]).values())
        waited = time.monotonic() - began
        print(f"attack by the only host on stdio: no others; its 8 calls were answered in {waited:.2f} s; {memory}")
        host.stdin.close()
        host.wait(30)
    served = [message for message in said if "slept" in json.dumps(message)]
    refused = [message["error"] for message in said if "error" in message]
    assert len(served) + len(refused) == 8
    assert memory.growth < 100 * 2**20
    # Two places and one in the queue; the spare place is for callers of whom nothing runs.
    assert len(served) == 3
    assert all(error["code"] == -32011 and error["data"]["retryAfter"] >= 1 for error in refused)


SLOW_PICTURES = """
import base64, json, sys

FILTER = '<filter id="f" x="0" y="0" width="1" height="1"><feTurbulence baseFrequency="0.9" numOctaves="10"/></filter>'
RECTANGLE = '<rect width="2000" height="2000" filter="url(#f)"/>'
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="2000">' + FILTER + RECTANGLE * 60 + "</svg>"

def answer(method, params, number):
    if method == "initialize":
        server = {"name": "pictures", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": "draw", "inputSchema": {"type": "object"}}]}
    drawn = SVG.replace("0.9", f"0.{number + 1}").encode()
    image = {"type": "image", "data": base64.b64encode(drawn).decode(), "mimeType": "image/svg+xml"}
    return {"content": [image]}

for number, line in enumerate(sys.stdin):
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {}, number)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_calls_without_media_do_not_wait_behind_media(attacked: Start) -> None:
    config = CONFIG + "queue_time = 60\n[media]\nworkers = 1\ntimeout = 2\nresult_timeout = 2\n"
    gateway = attacked({"pictures": SLOW_PICTURES}, config=config, more={"pictures": SHARED})
    shown = list[str]()

    def look() -> None:
        with closing(gateway.client("cursor", path="/mcp/cursor")) as host:
            shown.append(json.dumps(host.call("pictures__draw")))

    threads = [threading.Thread(target=look, daemon=True) for _ in range(AT_ONCE)]
    with gateway.watched() as watch:
        for thread in threads:
            thread.start()
        time.sleep(3)
        during = len(watch.waits)
        for thread in threads:
            thread.join(90)
    assert not watch.failures
    assert during >= 10  # while as many pictures are asked for as there are places
    assert len(shown) == len(threads)
    told = [each for each in shown if "too many other jobs wait" not in each and "longer" not in each]
    assert told == []
    assert any("too many other jobs wait" in each for each in shown)
