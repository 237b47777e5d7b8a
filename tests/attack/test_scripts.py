"""Hostile scripts: those whose values take for ever to be looked at, and very many. Nobody else waits."""

import json
import threading
import time
from pathlib import Path
from typing import Any

from tests.attack.conftest import BYSTANDER

CONFIG = """
[code_mode]
enabled = true
run_time = "1s"
may_change = ["bystander__*", "other__*"]
"""
WIDE = "a = (0,) * 10\nfor i in range(80): a = (a,) * 10\n"
DOUBLED = "a = (0,)\nfor i in range(64): a = (a, a)\n"
UNTIL_GONE = """
import time
try:
    for i in range(200):
        other__ping()
        time.sleep(0.1)
except RuntimeError as error:
    print(error)
print(bystander__ping() + ", still")
"""
SCRIPTS = {
    "a key": WIDE + "show({a: 1})",
    "an argument": DOUBLED + "bystander__ping(x={a: 1})",
    "the last value": DOUBLED + "{a}",
    "deep": "a = 0\nfor i in range(10_000): a = [a]\nbystander__ping(x=a)",
    "digits": "show([10 ** 100_000] * 50)",
    "long": "s = 'x' * 5_000_000\nfor i in range(20): bystander__ping(x=s)",
    "prints": "while True: print('x')",
}


def test_a_script_keeps_only_its_own_caller_waiting(attacked: Any) -> None:
    gateway = attacked(config=CONFIG)
    host = gateway.client("claude-code")
    for what, script in SCRIPTS.items():
        with gateway.watched(what) as others:
            result = host.call("gateway_run", {"code": script})
        assert result.get("content"), result
        assert not others.failures
        assert others.longest < 5
        assert others.growth < 300 * 2**20
    host.close()


def test_eighty_scripts_at_once_keep_only_their_callers_waiting(attacked: Any) -> None:
    gateway = attacked(config=CONFIG)
    said: list[str] = []

    def run() -> None:
        host = gateway.client("claude-code")
        said.append(host.call("gateway_run", {"code": "bystander__ping()"})["content"][0]["text"])
        host.close()

    threads = [threading.Thread(target=run) for _ in range(80)]
    with gateway.watched() as others:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert said.count("pong") >= 64 + 4
    assert all("too many scripts wait already" in text for text in said if text != "pong")
    assert not others.failures
    assert others.longest < 5


def test_a_script_goes_on_while_an_upstream_of_its_goes_away(attacked: Any, tmp_path: Path) -> None:
    gateway = attacked({"other": BYSTANDER}, config=CONFIG)
    host, said = gateway.client("claude-code"), list[str]()
    while "other__ping" not in host.tools():
        time.sleep(0.05)
    thread = threading.Thread(target=lambda: said.append(json.dumps(host.call("gateway_run", {"code": UNTIL_GONE}))))
    thread.start()
    while thread.is_alive() and not any("other__ping: ok" in line for line in gateway.said):
        time.sleep(0.05)
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(config.read_text("utf-8").partition("[upstreams.other]")[0], "utf-8")
    thread.join()
    host.close()
    assert "there is no tool named 'other__ping'" in said[0]
    assert "pong, still" in said[0]
