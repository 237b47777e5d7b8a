"""Very many small values in every place of a message: parsing and checking them keeps nobody else waiting for long."""

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

SERVER = """
import json, sys

VALUES = int(sys.argv[1])
TOO_MANY = 6_000_000

def say(values, **message):
    line = json.dumps({"jsonrpc": "2.0", **message}).replace('"MANY"', "[" + "[]," * values + "0]")
    sys.stdout.write(line + "\\n")
    sys.stdout.flush()

def listed(message):
    return [{"name": name, "inputSchema": {"type": "object"}} for name in PLACES]

FINE = {"content": [{"type": "text", "text": "fine"}]}
QUESTION = {"type": "object", "properties": {"a": {"type": "string", "enum": "MANY"}}}
PLACES = {
    "fine": lambda answer: answer(result=FINE),
    "too_many": lambda answer: answer(TOO_MANY, result={**FINE, "structuredContent": {"a": "MANY"}}),
    "error": lambda answer: answer(error={"code": -32000, "message": "it failed", "data": "MANY"}),
    "meta": lambda answer: answer(result={**FINE, "_meta": {"a": "MANY"}}),
    "annotations": lambda answer: answer(result={"content": [{**FINE["content"][0], "annotations": {"a": "MANY"}}]}),
    "log": lambda answer: (
        say(VALUES, method="notifications/message", params={"level": "error", "data": "MANY"}), answer(result=FINE)),
    "unknown": lambda answer: (say(VALUES, method="notifications/x", params={"a": "MANY"}), answer(result=FINE)),
    "ask": lambda answer: (
        say(VALUES, id="q", method="elicitation/create", params={"message": "?", "requestedSchema": QUESTION}),
        answer(result=FINE)),
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    params = message.get("params") or {}
    answer = lambda values=VALUES, **about: say(values, id=message["id"], **about)
    if message["method"] == "initialize":
        server = {"name": "many", "version": "1"}
        able = {"tools": {}, "prompts": {}, "completions": {}}
        answer(result={"protocolVersion": params["protocolVersion"], "capabilities": able, "serverInfo": server})
    elif message["method"] == "tools/list":
        answer(result={"tools": listed(message)})
    elif message["method"] == "prompts/list":
        answer(result={"prompts": [{"name": "p"}]})
    elif message["method"] == "prompts/get":
        text = {"type": "text", "text": "fine", "_meta": {"a": "MANY"}}
        answer(result={"messages": [{"role": "user", "content": text}]})
    elif message["method"] == "completion/complete":
        answer(result={"completion": {"values": "MANY"}})
    elif message["method"] == "tools/call":
        PLACES[params["name"]](answer)
    else:
        answer(result={})
"""

PLACES = ("error", "meta", "annotations", "log", "unknown", "ask", "too_many")
LONGEST = 10.0
"""Seconds that another host may wait while a million values arrive."""


# How a host asks decides little about what its server's answers cost: fewer values will do for the second kind.
@pytest.mark.parametrize(("modern", "values"), [(False, 1_000_000), (True, 300_000)], ids=["handshake", "modern"])
def test_many_values_wherever_they_are_keep_only_their_own_caller_waiting(
    attacked: Any, modern: bool, values: int, tmp_path: Path
) -> None:
    (tmp_path / "many.py").write_text(SERVER, "utf-8")
    gateway = attacked({"many": [sys.executable, str(tmp_path / "many.py"), str(values)]})
    with closing(gateway.client("somebody", modern=modern, capabilities={"elicitation": {}})) as host:
        host.tools()
        answers: dict[str, Any] = {}
        for place in PLACES:
            with gateway.watched(place) as others:
                answers[place] = json.dumps(host.call(f"many__{place}"))
                assert "fine" in json.dumps(host.call("many__fine"))
            assert not others.failures
            assert others.longest < LONGEST
        reference = {"type": "ref/prompt", "name": "many__p"}
        for method, params in (
            ("prompts/get", {"name": "many__p"}),
            ("completion/complete", {"ref": reference, "argument": {"name": "a", "value": ""}}),
        ):
            with gateway.watched(method) as others:
                assert host.ask(method, params)
            assert not others.failures
            assert others.longest < LONGEST
    assert "it failed" in answers["error"]
    assert len(answers["error"]) < 1_000
    assert "more than 5,000,000 values" in answers["too_many"]
