"""The gateway in every host's real file, as text: added, replaced, alone, and taken out again."""

import difflib
import json
import tomllib

import pytest
import yaml

from gateway.errors import ConfigError
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.gateway_entry import own_names, plan_install, plan_uninstall
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.launch_command import Launch

LOADS = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
EVERY = pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)


def variants(document):
    """The same file with other line ends and a byte order mark."""
    crlf = document.text.replace("\n", "\r\n")
    for text in (document.text, crlf, "\ufeff" + document.text, "\ufeff" + crlf, document.text.rstrip("\n")):
        yield Document(text, document.syntax, document.where)


def again(document, text):
    return Document(text, document.syntax, document.where)


@EVERY
def test_the_gateway_is_added_and_nothing_else_changes(host, sample, launch):
    for document in variants(sample(host.name)):
        others = list(document.table(host.table) or ())
        plan = plan_install(document, host, launch, only=False)
        assert plan.beside == tuple(others)
        after = again(document, plan.text)
        assert after.table(host.table)["gateway"] == host.entry("gateway", launch)
        assert {key: value for key, value in after.data.items() if key != host.table[0]} == {
            **{key: value for key, value in document.data.items() if key != host.table[0]},
            **host.settings,
        }
        if host.syntax == "json":  # lines are only added, or get a comma
            kept = [line.rstrip() for line in plan.text.splitlines()]
            assert [
                line
                for line in document.text.splitlines()
                if line.rstrip() not in kept and f"{line.rstrip()}," not in kept
            ] == []
        elif host.syntax == "yaml":  # lines are only added
            kept = difflib.ndiff(document.text.splitlines(), plan.text.splitlines())
            assert [line for line in kept if line.startswith("-")] == []
        else:
            assert plan.text.startswith(document.text)


@EVERY
def test_taking_it_out_gives_back_the_same_text(host, sample, launch):
    for document in variants(sample(host.name)):
        inside = again(document, plan_install(document, host, launch, only=False).text)
        assert own_names(inside, host) == ("gateway",)
        out = plan_uninstall(inside, host, settings=tuple(host.settings))
        if document.text.endswith("\n") or host.syntax == "json":
            assert out == document.text
        else:
            assert out.rstrip("\r\n") == document.text
        assert plan_uninstall(document, host) is None


@EVERY
def test_an_older_entry_of_the_gateway_is_replaced_in_its_place(host, sample, launch):
    for document in variants(sample(host.name)):
        first = again(document, plan_install(document, host, launch, only=False).text)
        newer = Launch("/new/mcp-gateway", ("serve",), {"PATH": "/bin"})
        plan = plan_install(first, host, newer, only=False)
        after = again(first, plan.text)
        assert after.table(host.table)["gateway"] == host.entry("gateway", newer)
        assert list(after.table(host.table) or ()) == list(first.table(host.table) or ())
        assert plan_install(after, host, newer, only=False).text == after.text


@EVERY
def test_only_takes_the_others_out_and_uninstalling_brings_them_back(host, sample, launch):
    document = sample(host.name)
    others = tuple(document.table(host.table))
    plan = plan_install(document, host, launch, only=True)
    assert plan.taken_out == others
    alone = again(document, plan.text)
    assert list(alone.table(host.table) or ()) == ["gateway"]
    back = plan_uninstall(alone, host, before=document, give_back=others)
    assert again(document, back).table(host.table) == document.table(host.table)


@EVERY
def test_an_empty_file_gets_the_gateway_alone(host, launch):
    for text in ("", "\ufeff", "\n"):
        plan = plan_install(Document(text, host.syntax, "FILE"), host, launch, only=False)
        data = LOADS[host.syntax](plan.text.lstrip("\ufeff"))
        for key in host.table:
            data = data[key]
        assert data == {"gateway": host.entry("gateway", launch)}


def test_comments_and_the_order_of_a_real_settings_file_stay(sample, launch):
    text = plan_install(sample("zed"), HOSTS["zed"], launch, only=False).text
    assert '"metrics": false, // no, thank you\n' in text
    assert text.index('"new-form"') < text.index('"gateway"') < text.index("/* nothing more */")
    codex = plan_install(sample("codex"), HOSTS["codex"], launch, only=True).text
    assert '[mcp_servers.not_a_table]\ncommand = "x"\n"""\n' in codex
    for comment in ("# the default", "# documentation\n", "# design\n", "# the end of it\n[tui]"):
        assert comment in codex


def test_a_table_of_servers_that_is_null_becomes_one(launch):
    document = Document('{"mcpServers": null, "a": 1}', "json", "FILE")
    text = plan_install(document, HOSTS["cursor"], launch, only=True).text
    assert json.loads(text) == {"mcpServers": {"gateway": HOSTS["cursor"].entry("gateway", launch)}, "a": 1}


@EVERY
def test_another_server_of_that_name_is_not_overwritten(host, launch):
    if host.syntax == "toml":
        text = '[mcp_servers.gateway]\ncommand = "other"\n'
    else:
        data = {"gateway": {"command": "other"}}
        for key in reversed(host.table):
            data = {key: data}
        text = json.dumps(data)
    document = Document(text, host.syntax, "FILE")
    with pytest.raises(ConfigError, match=r"FILE: [\w.]+\.gateway: another server has this name \(.* --name\)"):
        plan_install(document, host, launch, only=False)
    assert plan_install(document, host, launch, name="mcp", only=False).beside == ("gateway",)
    assert plan_uninstall(document, host) is None


@pytest.mark.parametrize(
    ("host", "text", "message"),
    [
        ("cursor", "{", "FILE:1:2: is not JSON: "),
        ("cursor", "[]", "FILE: is not a JSON object"),
        ("cursor", '{"mcpServers": 1}', "FILE: mcpServers: must be an object of servers"),
        ("codex", "a = \n", "FILE:1:5: is not TOML: "),
        ("codex", "mcp_servers = {}\n", "FILE: is written in a way that cannot be edited safely"),
        ("codex", "mcp_servers = 1\n", "FILE: mcp_servers: must be an object of servers"),
        ("hermes", "mcp_servers: [1]\n", "FILE: mcp_servers: must be an object of servers"),
        ("hermes", "a: [\n", "FILE:2:1: is not YAML: "),
        ("goose", "extensions:\n  ? a\n  : {}\n", "FILE: is written in a way that cannot be edited safely"),
    ],
)
def test_a_file_that_cannot_be_edited_exactly_is_refused(host, text, message, launch):
    with pytest.raises(ConfigError, match=message):
        plan_install(Document(text, HOSTS[host].syntax, "FILE"), HOSTS[host], launch, only=False)


def test_an_entry_written_inline_is_not_taken_out_by_guesswork():
    text = '[mcp_servers]\ngateway = { command = "mcp-gateway", args = ["serve"] }\n'
    with pytest.raises(ConfigError, match=r"cannot be edited safely \(edit it by hand"):
        plan_uninstall(Document(text, "toml", "FILE"), HOSTS["codex"])
