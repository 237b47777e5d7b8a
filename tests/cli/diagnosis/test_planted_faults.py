"""Faults planted in configurations, programs and servers: each is found, and its remedy is named."""

import json
import shlex
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.cli.diagnosis.doctor import diagnose
from gateway.errors import ProfileError

pytestmark = pytest.mark.anyio

SERVERS = Path(__file__).parents[2] / "servers"
OBJECT = {"type": "object"}


def table(*arguments: object) -> str:
    """The lines of an upstream's table that start a Python script."""
    return f"command = {json.dumps(sys.executable)}\nargs = {json.dumps([str(one) for one in arguments])}\n"


def raw(*flags: str) -> str:
    return table(SERVERS / "raw_stdio.py", *flags)


GOOD = "[upstreams.good]\n" + raw()
TOOL = {"name": "look", "description": "Looks.", "inputSchema": OBJECT}


@contextmanager
def http_server(*flags: str):
    """tests/servers/raw_http.py on a loopback port; gives the port."""
    process = subprocess.Popen([sys.executable, SERVERS / "raw_http.py", *flags], stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


async def test_nothing_is_wrong_where_nothing_is_wrong(examine, scripted):
    diagnosis = await examine(f"[http]\nport = 0\n[upstreams.good]\n{scripted(TOOL)}")
    assert diagnosis.usable
    assert [finding for finding in diagnosis.findings if finding.level != "ok"] == []
    text = next(finding.text for finding in diagnosis.findings if finding.about == "upstream good")
    assert "scripted 1, stdio, 2025-11-25 (handshake era), 1 tool" in text


# -- the configuration -------------------------------------------------------------------------------------------------

CONFIGURATIONS = {
    "an unset variable": (
        '[upstreams.x]\nurl = "http://127.0.0.1:1/${NOWHERE_SET}"\n',
        "the environment variable NOWHERE_SET is not set",
        "set it, or write ${NOWHERE_SET:-default}",
    ),
    "an unknown key": ('[upstreams.x]\ncomand = "x"\n', "upstreams.x.comand: unknown key", "did you mean 'command'?"),
    "an upstream without a way in": (
        "[upstreams.x]\n",
        "give either command (a program to start) or url",
        "`mcp-gateway config keys` lists every key",
    ),
    "broken TOML": ('[upstreams.x]\ncommand = "x\n', "mcp-gateway.toml:2", "fix the file at this line and column"),
    "an unknown profile": ('[gateway]\nprofile = "codx"\n', "gateway.profile: there is no such profile", "'codex'"),
    "a profile of one's own that extends nothing": (
        '[profiles.mine]\nextends = "codx"\n',
        "codx",
        "'codex'",
    ),
    "no upstream": ("", "no upstream is configured", "mcp-gateway import"),
}


@pytest.mark.parametrize("fault", CONFIGURATIONS)
async def test_a_configuration_that_cannot_be_used_is_said_and_the_rest_examined_all_the_same(examine, found, fault):
    text, words, remedy = CONFIGURATIONS[fault]
    diagnosis = await examine(text)
    assert not diagnosis.usable
    finding = found(diagnosis, words)
    assert finding.level == "problem"
    assert remedy in finding.remedy
    assert {"environment", "serve --http", "store", "media"} <= {one.about for one in diagnosis.findings}


async def test_several_faults_are_findings_with_a_remedy_each(examine):
    diagnosis = await examine('[upstreams.x]\ncomand = "x"\ncommand = "x"\n[http]\nprot = 1\n')
    problems = {one.text.partition(": ")[2]: one.remedy for one in diagnosis.findings if one.about == "configuration"}
    assert problems == {
        "upstreams.x.comand: unknown key": "did you mean 'command'?",
        "http.prot: unknown key": "did you mean 'port'?",
    }


async def test_a_comma_too_few_in_json_is_found_with_line_and_column(examine, found):
    text = '{\n  "mcpServers": {\n    "a": {"command": "x"}\n    "b": {"command": "y"}\n  }\n}'
    finding = found(await examine(text, name="servers.json"), "servers.json:4:5: is not JSON")
    assert "comma" in finding.remedy


async def test_a_missing_file_is_said_with_where_else_is_looked(tmp_path, examine, found):
    diagnosis = await diagnose(tmp_path / "nowhere.toml", {}, checks=())
    assert "./mcp-gateway.toml" in found(diagnosis, "there is no such file").remedy


async def test_without_any_configuration_the_ways_to_one_are_named(tmp_path, monkeypatch, found):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    diagnosis = await diagnose(None, {}, checks=())
    assert not diagnosis.usable
    assert "mcp-gateway init" in found(diagnosis, "there is no configuration: looked for").remedy


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a #! line")
async def test_a_launcher_that_fails_without_the_proxy_is_told_why_it_has_none(examine, tmp_path, monkeypatch):
    (tmp_path / "npx").write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    (tmp_path / "npx").chmod(0o755)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:of-mine@127.0.0.1:9")
    table = f'command = "{tmp_path}/npx"\nargs = ["-y", "x"]\n'
    findings = [one for one in (await examine(f"[upstreams.x]\n{table}")).findings if one.about == "upstream x"]
    assert [one.level for one in findings] == ["problem", "warning"]
    assert findings[1].text.startswith("HTTPS_PROXY did not reach it")
    assert 'upstreams.x.env = { HTTPS_PROXY = "${HTTPS_PROXY}" }' in findings[1].remedy
    assert "of-mine" not in str(findings)


async def test_a_disabled_upstream_is_said_and_a_configuration_of_nothing_else_is_a_problem(examine, found):
    diagnosis = await examine(f"[upstreams.off]\n{raw()}enabled = false\n")
    assert found(diagnosis, "not enabled").remedy == "upstreams.off.enabled = true"
    assert found(diagnosis, "no upstream is enabled").level == "problem"


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
@pytest.mark.parametrize(
    "lines", ['token = "a-secret-token"', '[access.tokens.alice]\ntoken = "a-secret-token-of-alice"']
)
async def test_a_token_in_a_file_that_others_can_read_is_a_warning(examine, found, tmp_path, lines):
    text = f"[http]\nport = 0\n{lines}\n{GOOD}"
    finding = found(await examine(text), "holds a token")
    assert (finding.level, "chmod 600" in finding.remedy) == ("warning", True)
    (tmp_path / "mcp-gateway.toml").chmod(0o600)
    assert not [one for one in (await examine(text)).findings if "holds a token" in one.text]


async def test_a_secret_on_a_command_line_is_a_warning(examine, found, tmp_path):
    (tmp_path / "key").write_text("s3cr3t-canary", "utf-8")
    table = f'command = {json.dumps(sys.executable)}\nargs = ["-c", "", "--key=${{file:key}}"]\nenabled = true\n'
    diagnosis = await examine(f"[upstreams.x]\n{table}{GOOD}")
    assert found(diagnosis, "upstreams.x.args has a secret").level == "warning"
    assert "s3cr3t" not in str(diagnosis.findings)


# -- programs ----------------------------------------------------------------------------------------------------------


async def upstream_problem(examine, lines: str, **more):
    diagnosis = await examine(f"[http]\nport = 0\n[upstreams.x]\n{lines}", **more)
    (finding,) = [one for one in diagnosis.findings if one.about == "upstream x"]
    assert finding.level == "problem"
    assert diagnosis.usable
    return finding


async def test_a_command_that_is_not_there(examine):
    finding = await upstream_problem(examine, 'command = "npx-of-nowhere"\n')
    assert finding.text == "the command 'npx-of-nowhere' was not found"
    assert "upstreams.x.command" in finding.remedy
    assert "which npx-of-nowhere" in finding.remedy


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
async def test_a_command_that_may_not_be_run(examine, tmp_path):
    script = tmp_path / "server.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(stat.S_IRUSR | stat.S_IWUSR)
    finding = await upstream_problem(examine, 'command = "./server.sh"\n')
    assert "may not be run" in finding.text
    assert finding.remedy == f"chmod +x {script}"


async def test_a_folder_that_is_not_there(examine, tmp_path):
    finding = await upstream_problem(examine, f'{raw()}cwd = "gone"\n')
    assert finding.text == f"the folder '{tmp_path / 'gone'}' (cwd) does not exist"
    assert finding.remedy == f"mkdir -p {tmp_path / 'gone'}, or change upstreams.x.cwd"


async def test_a_program_that_ends_at_once_with_the_line_that_says_why(examine):
    finding = await upstream_problem(examine, raw("die-at-start"))
    assert finding.text == "exited with code 1: KeyError: 'API_KEY'"
    assert 'upstreams.x.env = { API_KEY = "${API_KEY}" }' in finding.remedy


async def test_the_last_lines_of_a_program_that_ends_are_told_without_secrets(examine):
    said = ["first", "0", "1", "2", "Warning: no key abc-123", "Error: none"]
    script = f"import sys; print(*{said}, sep='\\n', file=sys.stderr); sys.exit(1)"
    finding = await upstream_problem(examine, table("-c", script) + 'env = { API_KEY = "abc-123" }\n')
    assert finding.text == "exited with code 1: Error: none"
    assert finding.stderr == ("0", "1", "2", "Warning: no key ***", "Error: none")
    assert finding.to_json()["stderr"] == list(finding.stderr)
    assert f"run `{shlex.quote(sys.executable)} -c " in finding.remedy


async def test_a_program_whose_python_lacks_a_package(examine):
    finding = await upstream_problem(examine, table("-c", "import package_of_nowhere"))
    assert "No module named 'package_of_nowhere'" in finding.text
    assert finding.remedy.startswith("install package_of_nowhere for ")


async def test_a_program_that_hangs(examine):
    finding = await upstream_problem(examine, f"{raw('deaf')}timeout = {{ start = 1.5 }}\n")
    assert finding.text == "was not ready within 1.5 s"
    assert "upstreams.x.timeout = { start = 120 }" in finding.remedy


async def test_a_program_that_writes_something_else_to_stdout(examine):
    finding = await upstream_problem(examine, f"{raw('deaf', 'garbage')}timeout = {{ start = 1.5 }}\n")
    assert "it printed 4 lines that are not MCP, first 'Welcome to raw server!'" in finding.text
    assert "stdout may carry MCP and nothing else" in finding.remedy


async def test_one_that_rests_soon_is_examined_awake(examine, scripted, found):
    slow = table("-c", "import time; time.sleep(3)")
    text = f"[http]\nport = 0\n[upstreams.good]\n{scripted(TOOL)}idle_stop = 0.5\n[upstreams.x]\n{slow}"
    diagnosis = await examine(text)
    assert "1 tool" in found(diagnosis, "ready after").text
    assert [finding.about for finding in diagnosis.findings if finding.level == "problem"] == ["upstream x"]


# -- addresses ---------------------------------------------------------------------------------------------------------


async def test_an_address_where_nothing_listens(examine):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    finding = await upstream_problem(examine, f'url = "http://127.0.0.1:{port}/mcp"\n')
    assert finding.text == f"connection refused by http://127.0.0.1:{port}"
    assert "start the server" in finding.remedy


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, 'upstreams.x.headers = { Authorization = "Bearer ${TOKEN}" }'),
        (403, "check the token in upstreams.x.headers"),
        (404, "an MCP server answers at /mcp there"),
    ],
)
async def test_an_address_that_says_no(examine, status, remedy):
    with http_server() as port:
        finding = await upstream_problem(examine, f'url = "http://127.0.0.1:{port}/status/{status}"\n')
    assert f"HTTP {status}" in finding.text
    assert remedy in finding.remedy


async def test_a_server_that_wants_oauth_gets_the_command_that_logs_in(examine):
    with http_server() as port:
        finding = await upstream_problem(examine, f'url = "http://127.0.0.1:{port}/login/oauth"\n')
        hinted = await upstream_problem(examine, f'url = "http://127.0.0.1:{port}/login/bearer"\n')
    for each in (finding, hinted):
        assert each.text == "waits for a login"
        assert each.remedy == "mcp-gateway login x"


async def test_a_token_that_is_not_accepted_is_not_shown(examine):
    with http_server() as port:
        lines = f'url = "http://127.0.0.1:{port}/status/401"\nheaders = {{ Authorization = "Bearer hunter2hunter2" }}\n'
        finding = await upstream_problem(examine, lines)
    assert "is not accepted" in finding.remedy
    assert "hunter2" not in finding.text + finding.remedy


@pytest.mark.parametrize(("path", "wrong", "right"), [("/sse", "http", "sse"), ("/mcp", "sse", "http")])
async def test_the_wrong_transport_is_found_by_trying_the_other(examine, path, wrong, right):
    with http_server() as port:
        lines = f'url = "http://127.0.0.1:{port}{path}"\ntransport = "{wrong}"\n'
        finding = await upstream_problem(examine, lines)
    assert f'upstreams.x.transport = "{right}"' in finding.remedy


async def test_https_where_plain_http_is_spoken(examine):
    with http_server() as port:
        finding = await upstream_problem(examine, f'url = "https://127.0.0.1:{port}/mcp"\n')
    assert "no secure connection" in finding.text
    assert "begin upstreams.x.url with http://" in finding.remedy


# -- tools -------------------------------------------------------------------------------------------------------------


async def test_a_tool_that_hosts_would_refuse_is_withheld(examine, scripted, found):
    lines = scripted(TOOL, {"name": "list", "description": "x", "inputSchema": {"type": "array"}})
    finding = found(await examine(f"[upstreams.x]\n{lines}"), "1 tool withheld")
    assert 'list (its inputSchema is not a schema of type "object")' in finding.text
    assert (finding.level, '"type": "object"' in finding.remedy) == ("problem", True)


async def test_a_tool_with_an_invalid_schema_is_withheld_by_itself(examine, scripted, found):
    bad = TOOL | {"name": "bad", "inputSchema": {"type": "object", "properties": {"when": {"type": "text"}}}}
    finding = found(await examine(f"[upstreams.x]\n{scripted(TOOL, bad)}"), "1 tool withheld")
    assert "bad (its inputSchema is invalid (properties.when: there is no type 'text'))" in finding.text


async def test_lists_that_are_cut(examine, scripted, found):
    lines = scripted(*(TOOL | {"name": f"look{n}", "description": "x" * 10_000} for n in range(5)))
    finding = found(await examine(f"[upstreams.x]\n{lines}limits = {{ list_bytes = 35000 }}\n"), "only the first 3 of")
    assert finding.level == "warning"
    assert "raise upstreams.x.limits.list_bytes" in finding.remedy


async def test_what_nests_too_deeply_in_a_list_is_said(examine, scripted, found):
    nested: object = {}
    for _ in range(300):
        nested = {"in": nested}
    deep = {"uri": "file:///a.txt", "name": "a", "_meta": nested}
    finding = found(await examine(f"[upstreams.x]\n{scripted(TOOL | {'_meta': nested})}"), "nested deeper than")
    assert (finding.level, finding.text.startswith("tools/list: tools[0]._meta")) == ("warning", True)
    lines = scripted(TOOL, resources={}, listed=[deep])
    finding = found(await examine(f"[upstreams.x]\n{lines}"), "nested deeper than")
    assert (finding.level, finding.text.startswith("resources/list: resources[0]._meta")) == ("warning", True)


async def test_two_tools_of_one_name(examine, scripted, found):
    finding = found(await examine(f"[upstreams.x]\n{scripted(TOOL, TOOL)}"), "several tools have the same name")
    assert finding.text.endswith(": look")


@pytest.mark.parametrize(
    ("schema", "words", "remedy"),
    [
        ({"$ref": "https://example.com/schema.json"}, "leads out of the schema", "into $defs"),
        ({"$ref": "#/$defs/gone"}, "'#/$defs/gone' leads nowhere", "exclude"),
        ({"enum": []}, "enum has no values", "exclude"),
    ],
)
async def test_a_schema_that_hosts_stumble_over(examine, scripted, found, schema, words, remedy):
    tool = TOOL | {"inputSchema": {"type": "object", "properties": {"when": schema}}}
    finding = found(await examine(f"[upstreams.x]\n{scripted(tool)}"), "inputSchema of 'look': properties.when")
    assert words in finding.text
    assert remedy in finding.remedy


async def test_an_output_schema_that_is_none_for_objects(examine, scripted, found):
    tool = TOOL | {"outputSchema": {"type": "array", "items": {"type": "string"}}}
    assert found(await examine(f"[upstreams.x]\n{scripted(tool)}"), "outputSchema of 'look'").level == "warning"


LONG_NAME = "look_at_" + "every_single_thing_" * 3


async def test_a_name_that_is_too_long_for_some_hosts(examine, scripted, found):
    name = LONG_NAME
    diagnosis = await examine(f"[upstreams.x]\n{scripted(TOOL | {'name': name})}", host="all")
    finding = found(diagnosis, "does not fit")
    assert "cline" in finding.hosts
    assert f"upstreams.x.tools.rename = {{ {name} = " in finding.remedy
    only = await examine(f"[upstreams.x]\n{scripted(TOOL | {'name': name})}", host="cline")
    assert found(only, "does not fit").hosts == ("cline",)


async def test_tools_beyond_the_number_that_a_host_takes(examine, scripted, found):
    some = [TOOL | {"name": f"look{number}"} for number in range(5)]
    mine = '[profiles.mine]\nextends = "default"\nmatch = [{ client_name = "mine" }]\nsets.tools.max_tools = 4\n'
    finding = found(await examine(f"{mine}[upstreams.x]\n{scripted(*some)}"), "beyond the host's limit of 4")
    assert finding.hosts == ("mine",)
    assert "include" in finding.remedy


async def test_a_limit_of_a_host_is_no_problem_for_its_tools_work(examine, scripted, found):
    some = [TOOL | {"name": f"look{number}"} for number in range(101)]
    diagnosis = await examine(f"[upstreams.x]\n{scripted(*some)}", host="windsurf")
    assert found(diagnosis, "beyond the host's limit of 100").level == "warning"
    assert diagnosis.count("problem") == 0


async def test_hosts_that_are_not_there_are_not_judged_for(examine, scripted, found, home):
    lines = f"[upstreams.x]\n{scripted(TOOL | {'name': LONG_NAME})}"
    alone = await examine(lines)
    assert {host for finding in alone.findings for host in finding.hosts} <= {"default"}
    assert "unknown clients" in found(alone, "tools are judged for ").text
    cursor = home / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    cursor.write_text('{"mcpServers": {}}')
    beside = await examine(lines)
    assert set(found(beside, "does not fit").hosts) - {"default"} == {"cursor"}
    assert "Cursor" in found(beside, "tools are judged for ").text
    for name in ("cline", "Cline"):
        asked = await examine(lines, host=name)
        assert found(asked, "does not fit").hosts == ("cline",)
    forced = await examine(f'gateway.profile = "Codex"\n{lines}')
    assert {host for finding in forced.findings for host in finding.hosts} <= {"codex"}


@pytest.mark.parametrize("name", ["vscode", "VSCode", "vscode-copilot"])
async def test_a_host_is_asked_about_by_its_own_name_or_its_profiles(examine, scripted, name, home):
    file = home / ".config" / "Code" / "User" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"servers": {}}')
    diagnosis = await examine(f"[upstreams.x]\n{scripted(TOOL)}", host=name)
    assert any(finding.about == "host vscode" for finding in diagnosis.findings)


async def test_names_that_collide(examine, found, scripted):
    lines = scripted(TOOL, TOOL | {"name": "gaze"})
    more = 'tools.rename = { gaze = "look" }\n'
    finding = found(await examine(f"[upstreams.x]\n{lines}{more}"), "has the name of 'gaze' already")
    assert "tools.rename" in finding.remedy


async def test_a_tool_without_a_description_and_settings_for_one_that_is_not_there(examine, scripted, found):
    lines = scripted({"name": "look", "inputSchema": OBJECT}) + 'tools.rename = { lok = "see" }\n'
    diagnosis = await examine(f"[upstreams.x]\n{lines}")
    assert "tools.describe = { look = " in found(diagnosis, "what these are for: look").remedy
    assert found(diagnosis, "upstreams.x.tools.rename: no tool named 'lok'").level == "warning"


async def test_filters_that_leave_nothing_are_a_problem(examine, scripted, found):
    finding = found(await examine(f'[upstreams.x]\n{scripted(TOOL)}tools.include = ["none*"]\n'), "1 tool left out")
    assert (finding.level, finding.remedy) == ("problem", "change upstreams.x.tools")


async def test_a_server_without_tools(examine, scripted, found):
    assert found(await examine(f"[upstreams.x]\n{scripted()}"), "it has no tools").level == "warning"


# -- the machine -------------------------------------------------------------------------------------------------------


async def test_a_port_that_is_taken(examine, found):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        finding = found(await examine(f"[http]\nport = {port}\n{GOOD}"), f"port {port} of 127.0.0.1 is taken")
    assert finding.level == "warning"
    assert "--port 0" in finding.remedy


async def test_an_address_that_others_reach_without_a_token(examine, found):
    finding = found(await examine(f'[http]\nport = 0\nbind = "0.0.0.0"\n{GOOD}'), "can be reached from other machines")
    assert (finding.level, "token" in finding.remedy) == ("problem", True)


async def test_an_address_that_this_machine_does_not_have(examine, found):
    text = f'[http]\nport = 8484\nbind = "192.0.2.1"\ntoken = "x"\n{GOOD}'
    assert "127.0.0.1" in found(await examine(text), "cannot listen on").remedy


async def test_a_store_without_room(examine, found):
    finding = found(await examine(f"[store]\nmax_bytes = 50\n{GOOD}"), "more than the 50 that the store holds")
    assert (finding.level, finding.about) == ("problem", "store")
    assert "store.max_bytes" in finding.remedy


async def test_a_store_that_cannot_be_used(examine, found, tmp_path):
    (tmp_path / "store").write_bytes(b"a file, and no folder")
    finding = found(await examine(f'[store]\nurl = "{(tmp_path / "store").as_uri()}"\n{GOOD}'), "the store file://")
    assert (finding.level, finding.about) == ("problem", "store")
    assert finding.remedy


async def test_a_store_in_a_folder_is_written_and_read_and_left_as_it_was(examine, found, tmp_path):
    diagnosis = await examine(f'[store]\nurl = "{(tmp_path / "store").as_uri()}"\n{GOOD}')
    assert found(diagnosis, "content is stored and read back at file://").level == "ok"
    assert [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()] == ["key"]


async def test_media_workers_without_time(examine, found):
    finding = found(await examine(f"[media]\ntimeout = 0.001\n{GOOD}"), "a small picture cannot be handled")
    assert (finding.level, finding.about) == ("problem", "media")
    assert "timeout" in finding.remedy


async def test_an_empty_path_is_a_problem_where_programs_are_named(examine, found):
    diagnosis = await examine(GOOD, environ={})
    assert found(diagnosis, "PATH is empty").level == "problem"


async def test_an_unknown_host_is_refused_with_the_nearest(examine):
    with pytest.raises(ProfileError, match="'codex'"):
        await examine(GOOD, host="codx")
