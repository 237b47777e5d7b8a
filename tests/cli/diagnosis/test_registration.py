"""The hosts' own files, as `doctor` sees them: registered or not, broken or not, and who else is there."""

import json
import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.registration import check_registration
from gateway.config.builtin_profiles import builtin_profiles, load_profiles
from gateway.config.load_settings import load_settings
from gateway.hosts.config_files.backups import Backups
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.launch_command import Launch
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.register_gateway import register, user_file

pytestmark = pytest.mark.anyio
FILES = Path(__file__).parents[2] / "hosts" / "config_files" / "files"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[upstreams.x]\ncommand = "x"\n')
    return path


@pytest.fixture
def look(config):
    """What is found in the hosts, as (about, level, text, remedy); by default with the configuration `config`."""

    async def run(*, file: Path | None = config, host: str | None = None):
        settings = load_settings(config).settings
        patient = CheckContext(settings, file, load_profiles(settings), os.environ, host)
        findings = await check_registration(patient)
        return [(one.about.removeprefix("host "), one.level, one.text, one.remedy) for one in findings]

    return run


@pytest.fixture
def put(config, tmp_path):
    """Register the gateway in a host; what is given differs. Gives the host's file."""

    def write(
        host: str, *more: str, command: str = sys.executable, file: Path | str = config, env=None, name="gateway"
    ):
        target = user_file(HOSTS[host], Machine.here())
        args = ("-m", "gateway", "serve", "--config", str(file), *more)
        backups = Backups(tmp_path / "backups")
        register(HOSTS[host], target, Launch(command, args, env or {}), backups, name=name, dry_run=False)
        return target

    return write


def own(host: str, text: str):
    target = user_file(HOSTS[host], Machine.here())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


def again(host: str, config: Path) -> str:
    return f"mcp-gateway install {host} --config {config}"


async def test_hosts_without_a_file_are_not_spoken_of(look):
    assert await look() == []


async def test_a_host_without_the_gateway_is_no_fault_and_told_the_command(look, config):
    file = own("codex", 'model = "x"\n')
    text = f"Codex does not have the gateway ({file}; no servers)"
    assert await look() == [("codex", "ok", text, again("codex", config))]


async def test_the_servers_of_a_host_without_the_gateway_are_named_with_the_way_behind_it(look, config):
    file = own("zed", '{"context_servers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    text = f"Zed does not have the gateway ({file}; 2 servers of its own: a, b)"
    import_ = again("zed", config).replace("install", "import")
    remedy = f"{import_} puts them behind the gateway; then {again('zed', config)} --only"
    assert await look() == [("zed", "ok", text, remedy)]


async def test_a_configuration_that_is_found_without_its_name_is_not_named_in_the_command(look, config, monkeypatch):
    monkeypatch.setenv("MCP_GATEWAY_CONFIG", str(config))
    own("codex", "")
    assert [remedy for *_, remedy in await look()] == ["mcp-gateway install codex"]


async def test_an_entry_that_should_choose_the_profile_of_a_host_without_a_name_is_warned_of(look, put):
    put("hermes")
    _, (_, level, text, remedy) = await look()
    assert (level, text) == (
        "warning",
        "Hermes Agent gets the profile default, because its name does not tell it from others",
    )
    assert remedy.startswith("mcp-gateway install hermes ")
    assert remedy.endswith(" chooses hermes in its entry")
    put("hermes", "--profile", "hermes")
    assert (await look())[1][2] == "Hermes Agent gets the profile hermes: its entry sets it with --profile"


@pytest.mark.parametrize("host", [name for name, host in HOSTS.items() if not host.nameless])
async def test_a_registration_that_works_is_said_with_its_profile(host, look, put):
    file = put(host)
    (_, level, text, _), (_, profile_level, profile, _) = await look()
    assert (level, profile_level) == ("ok", "ok")
    assert text == f"the gateway is registered in {HOSTS[host].title} as 'gateway' ({file})"
    name = HOSTS[host].profile or host
    expected = f"{name}: the client calls itself" if name in builtin_profiles() else "default: none is built in for"
    assert profile.startswith(f"{HOSTS[host].title} gets the profile {expected}")


async def test_a_host_without_a_profile_of_its_own_can_be_asked_about(look, put, monkeypatch):
    monkeypatch.setitem(HOSTS, "goose", replace(HOSTS["goose"], profile="not-there"))
    put("goose")
    put("codex")
    assert {about for about, *_ in await look(host="default")} == {"goose"}


async def test_the_profile_is_the_one_that_would_be_chosen(look, put, config):
    put("codex", "--profile", "cline")
    assert (await look())[1][2] == "Codex gets the profile cline: its entry sets it with --profile"
    put("codex")
    config.write_text('[profiles.mine]\nextends = "codex"\nmatch = [{ client_name = "codex-*" }]\n')
    assert (await look())[1][2].startswith("Codex gets the profile codex: ")
    config.write_text('[profiles.mine]\nextends = "codex"\nmatch = [{ client_name = "codex-mcp-client" }]\n')
    assert (await look())[1][2].startswith("Codex gets the profile mine: ")
    config.write_text('[gateway]\nprofile = "gemini-cli"\n')
    assert (await look())[1][2].startswith("Codex gets the profile gemini-cli: the configuration sets it")


async def test_a_profile_that_is_gone_is_a_problem(look, put, config):
    put("codex", "--profile=codx")
    about, level, text, remedy = (await look())[1]
    assert (about, level) == ("codex", "problem")
    assert text == "'gateway' asks for a profile that does not exist: no profile is called 'codx'"
    assert remedy == f"did you mean 'codex'?; {again('codex', config)} leaves it to the host"


async def test_a_gateway_that_is_called_over_http_is_told_with_its_address(look):
    file = own("cursor", '{"mcpServers": {"g": {"url": "http://127.0.0.1:8484/mcp/codex"}}}')
    (_, level, text, _), (_, _, profile, _) = await look()
    assert (level, text) == ("ok", f"Cursor calls the gateway at http://127.0.0.1:8484/mcp/codex, as 'g' ({file})")
    assert profile == "Cursor gets the profile codex: it was chosen explicitly"


async def test_servers_beside_the_gateway_are_named_with_the_command_that_moves_them(look, put, config):
    own("codex", '[mcp_servers.notes]\ncommand = "notes"\n')
    put("codex")
    import_ = again("codex", config).replace("install", "import")
    remedy = f"{import_} puts it behind the gateway; then {again('codex', config)} --only"
    assert (await look())[-1] == ("codex", "ok", "beside the gateway Codex has 1 other server: notes", remedy)


async def test_servers_that_are_behind_the_gateway_already_are_only_to_be_taken_out(look, put, config):
    config.write_text('[upstreams.a]\ncommand = "a"\n[upstreams.other]\ncommand = "b"\n')
    own("codex", '[mcp_servers.a]\ncommand = "a"\n[mcp_servers.b]\ncommand = "b"\n')
    remedy = f"both are behind the gateway already: {again('codex', config)} --only takes them out of the host"
    ((_, level, _, advice),) = await look()
    assert (level, advice) == ("ok", remedy)
    put("codex")
    text = "beside the gateway Codex has 2 other servers: a, b"
    double = "both are upstreams of the gateway, too: their tools are offered twice"
    assert (await look())[-1] == ("codex", "warning", f"{text}; {double}", remedy)


async def test_one_of_several_that_is_behind_the_gateway_is_named(look, put, config):
    config.write_text('[upstreams.a]\ncommand = "a"\n')
    own("codex", '[mcp_servers.a]\ncommand = "a"\n[mcp_servers.b]\ncommand = "b"\n')
    put("codex")
    _, level, text, remedy = (await look())[-1]
    assert (level, text.partition("; ")[2]) == (
        "warning",
        "a is an upstream of the gateway, too: its tools are offered twice",
    )
    assert remedy.startswith("a: behind the gateway already; mcp-gateway import codex ")


async def test_an_upstream_that_is_off_offers_nothing_twice(look, put, config):
    config.write_text('[upstreams.a]\ncommand = "a"\nenabled = false\n')
    own("codex", '[mcp_servers.a]\ncommand = "a"\n')
    put("codex")
    _, level, _, remedy = (await look())[-1]
    assert (level, remedy.partition(":")[0]) == ("ok", "a is behind the gateway already")


async def test_the_servers_of_projects_are_named_with_the_place_where_they_are(look, tmp_path, monkeypatch):
    here, known = tmp_path / "here", tmp_path / "known project"
    for folder in (here, known):
        folder.mkdir()
        (folder / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    monkeypatch.chdir(here)
    gateway = {"command": "/usr/bin/mcp-gateway", "args": ["serve"]}
    local = {str(known): {"mcpServers": {"c": {"command": "c"}, "gateway": gateway}}, str(tmp_path / "gone"): {}}
    user = own("claude-code", json.dumps({"mcpServers": {}, "projects": local}))
    assert [found[1:] for found in (await look(host="claude-code"))[1:]] == [
        ("ok", f"the gateway is registered in {user} as gateway, for {known} alone", None),
        (
            "ok",
            f"Claude Code has 1 server for {known} alone: c ({user})",
            "mcp-gateway import claude-code puts it behind the gateway",
        ),
        *(
            (
                "ok",
                f"Claude Code has 2 servers for {folder} alone: a, b ({file})",
                f"mcp-gateway import {shlex.quote(str(file))} puts them behind the gateway",
            )
            for folder in (here, known)
            for file in (folder / ".mcp.json",)
        ),
    ]


async def test_a_project_is_spoken_of_even_where_its_host_has_no_file_of_the_user(look, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "a"}}}')
    assert any("1 server for" in text for _, _, text, _ in await look())
    (tmp_path / ".mcp.json").write_text("{")
    assert await look() == []


async def test_a_second_registration_is_a_warning(look, put):
    put("codex")
    put("codex", name="more tools")
    text = "the gateway is registered more than once (gateway, more tools): every tool is offered as often"
    assert (await look())[-1] == ("codex", "warning", text, "mcp-gateway uninstall codex --name 'more tools'")


async def test_one_that_is_switched_off_is_a_warning(look, put):
    file = put("opencode")
    file.write_text(file.read_text().replace("true", "false"))
    assert ("opencode", "warning", "'gateway' is disabled there", "enable it in opencode") in await look()


async def test_a_program_that_is_gone_is_a_problem_with_the_command_that_mends_it(look, put, config):
    put("codex", "--profile", "cline", command="/gone/python", name="g")
    remedy = f"mcp-gateway install codex --name g --config {config} --profile cline"
    assert await look() == [("codex", "problem", "'g' starts /gone/python, which is not there", remedy)]


async def test_a_program_is_looked_for_on_the_path_of_the_entry(look, put, tmp_path, config):
    shutil.copy(sys.executable, tmp_path / "own-python")
    put("codex", command="own-python", env={"PATH": str(tmp_path)})
    assert [level for _, level, _, _ in await look()] == ["ok", "ok"]
    put("codex", command="own-python")
    assert await look() == [
        ("codex", "problem", "'gateway' starts own-python, which is not there", again("codex", config))
    ]


@pytest.mark.skipif(os.name != "posix", reason="scripts and modes are POSIX'")
async def test_a_script_without_its_interpreter_and_one_that_may_not_be_run_are_problems(look, put, tmp_path):
    script = tmp_path / "mcp-gateway"
    script.write_text("#!/gone/venv/bin/python\n")
    script.chmod(0o755)
    put("codex", command=str(script))
    (found,) = await look()
    assert found[1:3] == ("problem", f"'gateway' starts {script}, whose interpreter /gone/venv/bin/python is not there")
    script.chmod(0o644)
    (found,) = await look()
    assert found[1:3] == ("problem", f"'gateway' starts {script}, which may not be run")


async def test_a_configuration_that_is_gone_is_a_problem(look, put, config):
    put("codex", file="/gone/mine.toml")
    text = "'gateway' names the configuration /gone/mine.toml, which is not there"
    assert await look() == [("codex", "problem", text, again("codex", config))]
    remedy = "mcp-gateway init writes a configuration; then mcp-gateway install codex"
    assert await look(file=None) == [("codex", "problem", text, remedy)]


async def test_another_configuration_than_the_examined_one_is_a_warning(look, put, config, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text("")
    put("codex", file=other)
    (_, registered, _, _), found = await look()
    assert registered == "ok"
    text = f"'gateway' uses a different configuration from the one examined here: {other}"
    remedy = f"mcp-gateway doctor --config {other} examines that one; {again('codex', config)} changes it"
    assert found == ("codex", "warning", text, remedy)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["serve"], "'g' names no configuration"),
        (["serve", "--config=mine.toml"], "'g' names its configuration as mine.toml, which depends on"),
    ],
)
async def test_a_configuration_that_hangs_on_where_it_is_started_is_a_warning(look, args, words):
    entry = {"command": sys.executable, "args": ["-m", "gateway", *args]}
    own("claude-desktop", json.dumps({"mcpServers": {"g": entry}}))
    assert [level for _, level, _, _ in await look()] == ["ok", "warning"]
    assert (await look())[1][2].startswith(words)


async def test_what_only_the_host_can_replace_is_not_judged(look):
    entry = {"command": "${userHome}/bin/mcp-gateway", "args": ["serve", "--config", "${userHome}/mine.toml"]}
    own("cursor", json.dumps({"mcpServers": {"g": entry}}))
    assert {level for _, level, _, _ in await look()} == {"ok"}
    own("lm-studio", json.dumps({"mcpServers": {"g": entry}}))
    assert [about for about, level, _, _ in await look() if level == "problem"] == ["lm-studio"]


async def test_a_file_that_is_broken_is_a_problem_with_its_place(look):
    file = own("zed", '{"context_servers": {,}}')
    (found,) = await look()
    assert found[:2] == ("zed", "problem")
    assert found[2].startswith(f"{file}:1:22: is not JSON")
    assert found[3] == "fix it there: Zed may not read it either; then mcp-gateway install zed"


async def test_what_is_no_file_is_a_problem(look):
    file = user_file(HOSTS["codex"], Machine.here())
    file.mkdir(parents=True)
    (found,) = await look()
    assert found[1] == "problem"
    assert "cannot be read" in found[2]
    assert found[3] == f"make {file} a file that you can read"


async def test_one_host_can_be_asked_about(look, put):
    put("codex")
    put("zed")
    assert {about for about, *_ in await look(host="codex")} == {"codex"}


@pytest.mark.parametrize("host", HOSTS)
async def test_hosts_real_files_are_no_fault(host, look):
    syntax = HOSTS[host].syntax
    own(host, (FILES / f"{host}.{syntax}").read_text("utf-8"))
    assert {(about, level) for about, level, *_ in await look()} == {(host, "ok")}


@pytest.mark.parametrize(
    ("timeout", "warned"),
    [
        ("", False),
        ("timeout = { call = 500 }\n[long_calls]\nenabled = false", True),
        ("timeout = { call = 500 }", False),  # it is answered before the host gives up
        ("timeout = { call = 30 }\n[long_calls]\nenabled = false", False),
        ("timeout.start = 9\n[long_calls]\nenabled = false", False),
    ],
)
async def test_more_time_than_the_host_waits_is_warned_of_where_it_was_set(look, config, put, timeout, warned):
    config.write_text(f'[upstreams.slow]\ncommand = "{Path(sys.executable).as_posix()}"\n{timeout}\n')
    put("claude-desktop")
    said = [(level, text) for _, level, text, _ in await look() if "gives up on calls" in text]
    expected = "Claude Desktop gives up on calls after 240 s, but more time is set for slow"
    assert said == ([("warning", expected)] if warned else [])


async def test_the_profile_of_a_host_is_the_one_for_the_configured_model(look, config, put):
    config.write_text('[gateway]\nmodel = "big"\n[[profiles.mine.variant]]\nname = "x"\nmodels = ["big"]\n')
    put("codex", "--profile", "mine")
    (*_, (_, level, text, _)) = await look()
    assert (level, text) == ("ok", "Codex gets the profile mine-x: its entry sets it with --profile")


async def test_variables_that_the_host_may_not_have_are_named_with_the_command_that_gives_them(
    look, put, config, monkeypatch
):
    monkeypatch.setenv("A_TOKEN", "x")
    monkeypatch.delenv("ANOTHER", raising=False)
    config.write_text(
        '[upstreams.x]\ncommand = "x"\nargs = ["${A_TOKEN}", "${HOME}", "${REGION:-eu}", "$${NOT_ONE}"]\n'
        'env = { B = "${ANOTHER:-}", C = "${env:A_TOKEN}", D = "${MCP_GATEWAY_PYTHON}" }\n'
        '[upstreams.off]\ncommand = "${OFF:-}"\nenabled = false\n'
    )
    put("zed")
    options = "--env A_TOKEN --env ANOTHER=VALUE"
    remedy = f"{again('zed', config)} {options}"
    assert [one for one in await look() if one[1] != "ok"] == [
        ("zed", "warning", f"{config} needs A_TOKEN: where Zed does not have it, the gateway does not start", remedy),
        ("zed", "warning", f"{config} uses ANOTHER: where Zed does not have it, upstreams get an empty value", remedy),
    ]
    put("zed", env={"A_TOKEN": "x", "ANOTHER": "y"})
    assert [one for one in await look() if one[1] != "ok"] == []


async def test_a_server_for_one_project_that_is_behind_the_gateway_can_only_be_taken_out(look, config, tmp_path):
    config.write_text(f'[upstreams.a]\ncommand = "a"\ncwd = "{tmp_path}"\n')
    own("claude-code", json.dumps({"projects": {str(tmp_path): {"mcpServers": {"a": {"command": "a"}}}}}))
    _, level, text, remedy = (await look())[-1]
    assert (level, text.partition(" (")[0]) == ("ok", f"Claude Code has 1 server for {tmp_path} alone: a")
    assert remedy.startswith("behind the gateway already: in that folder, claude mcp remove a -s local takes it out")


async def test_servers_that_cannot_be_imported_are_named_with_the_cause(look, config):
    own("zed", '{"context_servers": {"a": {"comand": "a"}, "b": {"comand": "b"}}}')
    cannot = "cannot be imported: has neither a command nor a url"
    ((*_, remedy),) = await look()
    assert remedy == f"{again('zed', config)}; a {cannot}; b {cannot}"
