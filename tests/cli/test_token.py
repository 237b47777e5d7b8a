"""`mcp-gateway token`: from the command line to a running gateway, and back out."""

import json
import socket
import time
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.config.load_settings import load_settings
from gateway.serving.access.tokens import Access, Identified

CONFIG = """# my servers
[http]
port = 0

[upstreams.docs]  # the best
command = "docs"
enabled = false
"""


@pytest.fixture
def config(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(CONFIG, "utf-8")
    return path


def load_tokens(config: Path) -> dict[str, object]:
    return tomllib.loads(config.read_text("utf-8")).get("access", {}).get("tokens", {})


def access(config: Path) -> Access:
    settings = load_settings(config, environ={}).settings
    return Access(settings.http, settings.access)


@pytest.mark.anyio
async def test_a_token_is_shown_once_and_only_its_hash_is_kept(config, command):
    added = command("token", "add", "alice", "--upstream", "docs", "--upstream", "git*", "--profile", "codex")
    token = added.out.strip()
    assert added.code == 0
    assert "it is not shown again" in added.err
    text = config.read_text("utf-8")
    assert text.startswith(CONFIG)
    assert token not in text
    found = await access(config).identify(f"Bearer {token}")
    assert isinstance(found, Identified)
    assert (found.principal, found.grant.upstreams, found.profile) == ("alice", ("docs", "git*"), "codex")


def test_what_a_new_token_reaches_is_said(config, command):
    def told(*words):
        return " ".join(command("token", "add", *words).err.split())

    everything = "It reaches all servers and all of their tools, now and later: --upstream and --tool limit that."
    assert everything in told("alice")
    chosen = told("bob", "--upstream", "docs", "--upstream", "git*")
    assert "It reaches the servers docs, git*, of them all tools, and nothing else." in chosen
    tools = told("carl", "--tool", "docs__*")
    assert "It reaches all servers, of them the tools docs__*, and nothing else." in tools


def test_a_token_that_exists_can_be_edited_in_the_file(config, command):
    command("token", "add", "alice@x.org")
    ended = command("token", "add", "alice@x.org", "--upstream", "docs")
    assert ended.code == 2
    assert "there is a token 'alice@x.org' already (edit [access.tokens.\"alice@x.org\"] there, which" in ended.err
    assert "`mcp-gateway token rm` removes it; or choose another name)" in ended.err


def test_tokens_are_listed_without_anything_secret(config, command):
    command("token", "add", "alice")
    options = "--principal team --tool docs__* --expires 2027-01-31 --calls-per-minute 60"
    command("token", "add", "bob", *options.split())
    listed = command("token", "ls").out
    assert command("token", "list").out == listed
    assert listed.splitlines()[1].split() == ["alice", "alice", "all", "all", "-", "never", "-"]
    assert listed.splitlines()[2].split() == ["bob", "team", "all", "docs__*", "-", "2027-01-31", "60"]
    assert "sha256" not in listed
    assert json.loads(command("token", "ls", "--json").out) == [
        {"name": "alice"},
        {"name": "bob", "principal": "team", "tools": ["docs__*"], "expires": "2027-01-31", "calls_per_minute": 60},
    ]


@pytest.mark.anyio
async def test_a_token_may_expire_after_a_time(config, command):
    token = json.loads(command("token", "add", "guest", "--expires", "90d", "--json").out)["token"]
    expires = load_settings(config, environ={}).settings.access.tokens["guest"].expires
    assert isinstance(expires, datetime)
    assert abs(expires - datetime.now(UTC) - timedelta(days=90)) < timedelta(minutes=5)
    later = Access(
        load_settings(config, environ={}).settings.http,
        load_settings(config, environ={}).settings.access,
        clock=lambda: time.time() + 91 * 86_400,
    )
    assert await later.identify(f"Bearer {token}") == "expired"


def test_a_removed_token_leaves_the_file_as_it_was(config, command):
    command("token", "add", "alice")
    removed = command("token", "rm", "alice")
    assert (removed.code, config.read_text("utf-8")) == (0, CONFIG)


def test_a_removal_that_a_gateway_cannot_take_over_is_no_success(config, command):
    command("token", "add", "alice")
    with config.open("a", encoding="utf-8") as file:
        file.write('[content]\nkey = "${file:absent}"\n')
    removed = command("token", "rm", "alice")
    assert (removed.code, "alice" in load_tokens(config)) == (2, False)
    assert "absent cannot be read" in removed.err
    assert "error: a running gateway refuses the token alice, but takes over nothing else (mend" in removed.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("add", "a b"), "cannot be the name of a token"),
        (("add", "local"), "is the gateway's own"),
        (("add", "alice", "--expires", "soon"), "neither a time from now"),
        (("add", "alice", "--principal", "token"), "is the gateway's own"),
        (("rm", "alice"), "there is no token 'alice'"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(config, command, arguments, told):
    ended = command("token", *arguments)
    assert ended.code == 2
    assert told in ended.err
    assert config.read_text("utf-8") == CONFIG


def test_a_name_is_given_once(config, command):
    command("token", "add", "alice")
    again = command("token", "add", "alice")
    assert (again.code, "there is a token 'alice' already" in again.err) == (2, True)


def test_a_profile_that_does_not_exist_is_noticed(config, command):
    assert (
        "access.tokens.alice.profile: there is no such profile"
        in command("token", "add", "alice", "--profile", "nobody").err
    )


@pytest.mark.anyio
async def test_a_token_for_an_address_is_shown_as_one_with_a_warning(config, command):
    added = command("token", "add", "phone", "--url", "--upstream", "docs")
    address = added.out.strip()
    assert address.startswith("http://127.0.0.1:0/t/mcpg_")
    assert address.endswith("/mcp")
    assert "whoever sees this address has the token" in added.err
    token = address.split("/")[-2]
    assert token not in added.err + config.read_text("utf-8")
    found = access(config).identify_by_url(token)
    assert isinstance(found, Identified)
    assert found.grant.upstreams == ("docs",)
    assert command("token", "ls").out.splitlines()[1].split()[:3] == ["phone", "(url)", "phone"]
    shown = json.loads(command("token", "add", "tablet", "--url", "--json").out)
    assert shown["url"] == f"http://127.0.0.1:0/t/{shown['token']}/mcp"


def test_the_address_is_that_of_the_gateway_that_runs(over_http, pictures, command):
    path = pictures()
    _, address = over_http(path)
    assert f"{address} --header" in command("token", "add", "alice", "--config", path).err


def test_the_address_is_the_public_one(config, command):
    config.write_text('[gateway]\npublic_url = "https://tools.example.com/gateway/"\n', "utf-8")
    assert command("token", "add", "phone", "--url").out.startswith("https://tools.example.com/gateway/t/mcpg_")


def test_a_host_with_the_token_is_shown_and_how_to_try_it(config, command):
    config.write_text(CONFIG.replace("port = 0", 'bind = "192.168.1.4"\nport = 8500'))
    said = command("token", "add", "alice").err
    url = "http://192.168.1.4:8500"
    assert f'claude mcp add --transport http gateway {url}/mcp --header "Authorization: Bearer TOKEN"' in said
    assert f'curl -H "Authorization: Bearer TOKEN" {url}/\n' in said
    assert "mcp-gateway tools --token alice" in said


@pytest.mark.parametrize("bind", ["0.0.0.0", "::"])
def test_a_gateway_on_every_address_is_shown_by_the_name_of_the_machine(config, command, bind):
    config.write_text(CONFIG.replace("port = 0", f'bind = "{bind}"\nport = 8500'))
    assert f"http://{socket.gethostname()}:8500/mcp" in command("token", "add", "alice").err


@pytest.mark.parametrize("words", [("--upstream", "nosuch"), ("--tool", "docs_read"), ("--tool", "dox__read")])
def test_a_token_for_what_there_is_not_is_made_with_a_warning(config, command, words):
    added = command("token", "add", "carol", *words)
    assert added.code == 0
    assert f"warning: access.tokens.carol.{words[0][2:]}s: {words[1]!r} matches no {words[0][2:]} (fix" in added.err
    assert added.out.count("\n") == 1
    assert "warning" not in command("token", "add", "dora", "--upstream", "d*", "--tool", "docs__*").err
