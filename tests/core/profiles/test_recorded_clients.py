"""The first requests of real clients, as recorded: which are told apart, and which get the default profile."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.model.caller import Caller
from gateway.core.profiles.match_profile import choose_profile, header_matches, headers_seen
from gateway.core.profiles.profile import Match

RECORDED = json.loads((Path(__file__).parent / "recorded" / "first_requests.json").read_text("utf-8"))["requests"]
BUILTIN = builtin_profiles()
ID = "{client} {version}, {transport}".format_map
FORWARDED = {"x-openwebui-user-id": "1", "x-openwebui-chat-id": "2"}


def caller(recorded, **more) -> Caller:
    """What the gateway sees of it."""
    params = recorded["body"]["params"]
    info = params.get("clientInfo") or params["_meta"]["io.modelcontextprotocol/clientInfo"]
    headers = {name.lower(): value for name, value in recorded.get("headers", {}).items()}
    said = {"client_name": info["name"], "client_version": info["version"], "user_agent": headers.get("user-agent")}
    return Caller(**{**said, "headers": headers, **more})


SAME_NAME = [one for one in RECORDED if caller(one).client_name == "mcp"]


@pytest.mark.parametrize("recorded", SAME_NAME, ids=ID)
def test_clients_with_the_name_of_the_sdk_get_the_default_profile_and_their_own_by_path(recorded):
    assert choose_profile(BUILTIN, caller(recorded), None).profile.name == "default"
    if recorded["client"] in BUILTIN:
        chosen = choose_profile(BUILTIN, caller(recorded, profile=recorded["client"]), None)
        assert chosen.profile.name == recorded["client"]


def test_nothing_in_their_first_requests_tells_them_apart():
    """If this fails after a new recording, one of them can be recognised: give its profile a match."""
    same = defaultdict(set)
    for one in SAME_NAME:
        body = {key: value for key, value in one["body"].items() if key != "id"}
        body["params"] = {key: value for key, value in body["params"].items() if value != {}}  # SDK 2.1.1: `_meta: {}`
        # What is accepted depends on the libraries that are installed beside the client.
        headers = {name.lower(): value for name, value in one.get("headers", {}).items() if name != "Accept-Encoding"}
        same[json.dumps([body, headers], sort_keys=True)].add(one["client"])
    alone = [clients for clients in same.values() if len(clients) == 1]
    assert {"mcp", "openai-agents", "strands"} in same.values()  # on HTTP, in 2026-07-28
    assert {"langchain", "smolagents"} in same.values()  # on HTTP, in 2025-11-25
    assert {"mcp", "openai-agents", "strands", "langchain", "smolagents"} in same.values()  # on stdio
    assert {"hermes"} in alone  # by capabilities that any program may declare


@pytest.mark.parametrize(
    ("client", "profile"),
    [
        ("claude-code", "claude-code"),
        ("cline", "cline"),
        ("codex", "codex"),
        ("continue-cli", "continue-cli"),
        ("copilot-cli", "copilot-cli"),
        ("gemini-cli", "gemini-cli"),
        ("kilo", "kilo-code"),
        ("kimi-code", "kimi-code"),
        ("openclaw", "openclaw"),
        ("opencode", "opencode"),
        ("qwen-code", "qwen-code"),
    ],
    ids=lambda value: value,
)
def test_clients_with_a_name_of_their_own_are_recognised(client, profile):
    (recorded,) = (one for one in RECORDED if one["client"] == client)
    assert choose_profile(BUILTIN, caller(recorded), None).profile.name == profile


@pytest.mark.parametrize("recorded", [one for one in SAME_NAME if "headers" in one], ids=ID)
def test_open_webui_is_told_by_its_own_headers(recorded):
    forwarding = caller(recorded)
    forwarding = caller(recorded, headers={**forwarding.headers, **FORWARDED})
    choice = choose_profile(BUILTIN, forwarding, None)
    assert choice.profile.name == "open-webui"
    assert choice.because == "the client calls itself 'mcp' and sends x-openwebui-*"
    assert choose_profile(BUILTIN, caller(recorded, headers=FORWARDED, profile="codex"), None).profile.name == "codex"


def test_its_headers_alone_are_nothing():
    for name in (None, "codex-mcp-client", "somebody"):
        chosen = choose_profile(BUILTIN, Caller(client_name=name, headers=FORWARDED), None).profile.name
        assert chosen == ("codex" if name == "codex-mcp-client" else "default")


def test_only_headers_that_a_profile_looks_at_count():
    matches = header_matches(BUILTIN)
    assert Match(client_name="mcp", header="x-openwebui-*") in matches
    assert headers_seen(matches, Caller(client_name="MCP (via mcp-remote 0.1.30)", headers=FORWARDED)) == (
        "x-openwebui-*",
    )
    assert headers_seen(matches, Caller(client_name="mcp", headers={"x-other": "x-openwebui-user-id"})) == ()
    assert headers_seen(matches, Caller(client_name="mcp", headers={"x" * 10_000: ""})) == ()
    assert headers_seen(matches, Caller(client_name="other", headers=FORWARDED)) == ()
