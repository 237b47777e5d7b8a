"""`mcp-gateway add`, `remove`, `enable` and `disable`: what a user types, in a home of its own."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

PICTURES = Path(__file__).parents[1] / "servers" / "pictures_stdio.py"
SERVER = ["--", sys.executable, str(PICTURES)]


@pytest.fixture
def own():
    """The user's own configuration."""
    return Path.cwd() / "mcp-gateway" / "mcp-gateway.toml"


def upstreams(path):
    return tomllib.loads(path.read_text())["upstreams"]


def test_from_nothing_to_tools(command, own):
    ended = command("add", "pics", "--yes", *SERVER)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        f"{own}: pics added (stdio, {sys.executable})\n"
        "next: `mcp-gateway tools` waits for its start, and lists its tools\n"
    )
    assert own.stat().st_mode & 0o777 == 0o600
    assert own.read_text().startswith("# The configuration of mcp-gateway.")
    assert "\n\n\n" not in own.read_text()
    assert "pics__" in command("tools").out
    assert command("disable", "pics").out == f"{own}: pics disabled\n"
    assert command("disable", "pics").out == f"{own}: pics is disabled already\n"
    assert upstreams(own)["pics"]["enabled"] is False
    listed = command("tools", "pics")
    assert (listed.code, listed.out, listed.err) == (0, "", "pics is not enabled: mcp-gateway enable pics\n")
    assert command("enable", "pics").out == f"{own}: pics enabled\n"
    assert command("remove", "pics").out == f"{own}: pics removed\n"
    assert "upstreams" not in tomllib.loads(own.read_text())


def test_a_server_added_with_relative_paths_runs_from_anywhere(command, own, monkeypatch, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "server.py").write_bytes(PICTURES.read_bytes())
    monkeypatch.setenv("PYTHONPATH", str(PICTURES.parents[2]))
    with monkeypatch.context() as there:
        there.chdir(folder)
        ended = command("add", "pics", "--yes", "--env", "PYTHONPATH=${PYTHONPATH}", "--", sys.executable, "server.py")
    assert f"its working folder is {folder}, where its arguments name files" in ended.out
    assert upstreams(own)["pics"]["cwd"] == str(folder)
    assert "pics__" in command("tools").out


@pytest.mark.parametrize("argument", ["-y", "--file=missing.py", "missing.py", "https://h.example/x", "${HOME}", ""])
def test_arguments_that_name_nothing_here_need_no_working_folder(command, own, argument):
    assert command("add", "x", "--yes", "--", sys.executable, argument).code == 0
    assert "cwd" not in upstreams(own)["x"]


def test_a_broken_file_is_not_said_to_be_taken_over(command, own, start, ask):
    assert command("add", "pics", "--yes", *SERVER).code == 0
    process = start("serve", "--config", own)
    process.initialize()
    ask(process, "pics__pid")  # it runs, and can be found
    with own.open("a") as file:
        file.write("[gatewy]\n")
    for words in (("add", "more", *SERVER), ("disable", "pics"), ("enable", "pics"), ("remove", "more")):
        ended = command(*words)
        assert "takes it over" not in ended.out
        assert "warning: the configuration cannot be used yet: " in ended.err
        assert f"the running gateway (process {process.process.pid}) goes on with what was read before" in ended.err


def test_without_a_configuration_nothing_is_written_unasked(command, own):
    ended = command("add", "pics", *SERVER)
    assert (ended.code, ended.out) == (2, "")
    remedy = f"--yes writes {own}, --config names another file"
    assert ended.err == f"error: there is no configuration yet ({remedy})\n"
    assert not own.exists()


@pytest.mark.parametrize("agreed", [True, False])
def test_somebody_at_a_terminal_is_asked(command, own, monkeypatch, agreed):
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda question, **_: asked.append(question) or agreed)
    ended = command("add", "pics", *SERVER)
    assert asked == [f"There is no configuration yet. Write {own}?"]
    assert (ended.code, own.exists()) == ((0, True) if agreed else (130, False))


def test_everything_that_a_server_is_given(command, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text("# mine\n[http] # the port\nport = 1\n")
    words = ("--env", "A=b=c", "-e", "TOKEN=${TOKEN:-}", "--cwd", "here", "--config", config)
    assert command("add", "one", *words, "--", "./server.py", "--env", "x", "-y").code == 0
    assert upstreams(config)["one"] == {
        "command": str(Path.cwd() / "server.py"),
        "args": ["--env", "x", "-y"],
        "env": {"A": "b=c", "TOKEN": "${TOKEN:-}"},
        "cwd": str(Path.cwd() / "here"),
    }
    url = "http://127.0.0.1:9/mcp"
    ended = command("add", "two", url, "--header", "Authorization: Bearer x:y", "--type", "sse", "--config", config)
    assert f"next: `mcp-gateway tools --config {config}` waits for its start" in ended.out
    assert upstreams(config)["two"] == {"url": url, "transport": "sse", "headers": {"Authorization": "Bearer x:y"}}
    assert "x:y" not in ended.out + ended.err
    assert config.read_text().startswith("# mine\n[http] # the port\nport = 1\n")


def test_replacing_keeps_how_it_is_treated(command, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text(
        '[upstreams.one] # first\nurl = "http://127.0.0.1:9/mcp"\n\n[upstreams.one.tools]\nexclude = ["rm"]\n'
    )
    ended = command("add", "one", "--replace", "--config", config, *SERVER)
    assert f"{config}: one changed (stdio, {sys.executable})\n" in ended.out
    assert upstreams(config)["one"]["tools"] == {"exclude": ["rm"]}
    assert "url" not in upstreams(config)["one"]
    assert "# first" in config.read_text()


def test_a_running_gateway_takes_it_over(command, start, pictures, ask):
    config = pictures()
    process = start("serve", "--config", config)
    process.initialize()
    ask(process, "pics__pid")  # it runs, and can be found
    ended = command("add", "more", "--config", config, *SERVER)
    assert f"the running gateway (process {process.process.pid}) takes it over now: no restart is needed\n" in ended.out
    while ask(process, "more__pid", fails=None) is None:
        pass
    ended = command("remove", "more", "--config", config)
    assert "takes it over now" in ended.out


def test_a_json_configuration_stays_one(command, tmp_path):
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"a": {"command": "x"}}} // mine\n')
    assert command("add", "pics", "--config", config, *SERVER).code == 0
    assert config.read_text().endswith(" // mine\n")
    assert "pics__" in command("tools", "--config", config).out
    new = tmp_path / "new.json"
    assert command("add", "pics", "--yes", "--config", new, *SERVER).code == 0
    assert json.loads(new.read_text()) == {"mcpServers": {"pics": {"command": SERVER[1], "args": SERVER[2:]}}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["x"], "give the server's URL, or -- and its command line"),
        (["x", "npx", "-y", "server"], "put -- before the command line"),
        (["x", "127.0.0.1:8000/mcp"], "did you mean http://127.0.0.1:8000/mcp? A command line goes after --"),
        (["x", "example.org/mcp"], "did you mean https://example.org/mcp? A command line goes after --"),
        (["my", "server", "--", "npx", "-y"], "one name stands before --, and this is another word: 'server'"),
        (["x", "http://127.0.0.1:9", "more"], "a URL takes no arguments"),
        (["x", "http://127.0.0.1:9", "--env", "A=b"], "--env and --cwd are for a command"),
        (["x", "http://127.0.0.1:9", "--header", "Authorization"], "give it as --header 'NAME: VALUE'"),
        (["x", "--env", "A", "--", "y"], "give it as --env NAME=VALUE"),
        (["x", "--header", "A: b", "--", "y"], "--header and --type are for a URL"),
        (["pics", "--", "y"], "there is an upstream 'pics' already (choose another name, or let --replace"),
        (["pocs", "--replace", "--", "y"], "there is no upstream 'pocs' (did you mean 'pics'?)"),
        (["x y", "--", "y"], "'x y' cannot be the name of an upstream"),
        (["gateway", "--", "y"], "the name 'gateway' is the gateway's own"),
    ],
    ids=str,
)
def test_what_cannot_be_added_is_one_line_and_the_file_stays(command, pictures, given, message):
    config = pictures()
    before = config.read_bytes()
    ended = command("add", "--config", str(config), *given)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert config.read_bytes() == before


@pytest.mark.parametrize("verb", ["remove", "enable", "disable"])
def test_what_is_not_there_cannot_be_changed(command, pictures, verb):
    ended = command(verb, "pocs", "--config", pictures())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith("there is no upstream 'pocs' (did you mean 'pics'?)\n")
    ended = command(verb, "pics")
    assert (ended.code, ended.err) == (2, "error: there is no configuration yet (`mcp-gateway add` begins one)\n")


def test_the_gateways_own_python_can_be_started(command, pictures):
    ended = command("add", "x", "--config", pictures(), "--", "${MCP_GATEWAY_PYTHON}", "-m", "nothing")
    assert (ended.code, ended.err) == (0, "")


def test_what_will_keep_it_from_working_is_said(command, pictures, monkeypatch):
    config = pictures()
    monkeypatch.delenv("NOBODY_SETS_THIS", raising=False)
    ended = command("add", "x", "--config", config, "--env", "A=${NOBODY_SETS_THIS}", "--", "no-such-program")
    assert ended.code == 0
    assert "warning: there is no program 'no-such-program' that could be started here\n" in ended.err
    assert "warning: the configuration cannot be used yet: " in ended.err
    assert "the environment variable NOBODY_SETS_THIS is not set" in ended.err
    assert ended.err.count("\n") == 2


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_file_that_may_not_be_written_is_refused(command, pictures):
    config = pictures()
    config.chmod(0o400)
    if os.access(config, os.W_OK):
        pytest.skip("this user may write everything")
    ended = command("disable", "pics", "--config", config)
    assert (ended.code, ended.err) == (2, f"error: {config}: is write-protected (make it writable first)\n")


def test_a_server_that_wants_a_login_is_added_with_the_way_out(command, pictures, http_server):
    config = pictures()
    ended = command("add", "linear", f"{http_server}/login/oauth", "--config", config)
    assert ended.code == 0
    assert ended.err == "linear wants a login (OAuth): `mcp-gateway login linear` opens it in your browser\n"
    through = ("npx", "-y", "mcp-remote", f"{http_server}/login/oauth")
    replaced = command("add", "linear", "--config", config, "--replace", "--", *through)
    assert replaced.code == 0
    assert "its first start opens the browser for the login" in replaced.out
    assert upstreams(config)["linear"] == {
        "command": "npx",
        "args": ["-y", "mcp-remote", f"{http_server}/login/oauth"],
        "timeout": {"start": 180},  # somebody logs in meanwhile
    }
    for path in ("/login/bearer", "/mcp", "/status/401"):
        ended = command("add", f"x{path.count('/')}{len(path)}", f"{http_server}{path}", "--config", config)
        assert (ended.code, ended.err) == (0, "")


def test_other_commands_do_not_pay_for_editing_and_asking():
    heavy = {"tomlkit", "httpx2", "mcp"}
    code = (
        f"import sys; from gateway.cli.app import application; application(); print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


API = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://{region}.pets.example/v1/", "variables": {"region": {"default": "eu"}}}],
    "paths": {"/pets": {"get": {"operationId": "listPets", "responses": {}}, "post": {"operationId": "addPet"}}},
}


def test_an_http_api_is_added_by_its_document(command, own, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PETS_KEY", "a-key-of-mine")
    (tmp_path / "pets.json").write_text(json.dumps(API))
    ended = command("add", "pets", "--yes", "--openapi", "pets.json", "-H", "X-Key: ${PETS_KEY}", "--config", str(own))
    assert (ended.code, ended.err) == (0, "")
    assert "the API is at https://eu.pets.example/v1, as the document says" in ended.out
    assert "pets added (an HTTP API, of which the operations that only read are offered)" in ended.out
    assert upstreams(own)["pets"] == {
        "openapi": str(tmp_path / "pets.json"),
        "base_url": "https://eu.pets.example/v1",
        "headers": {"X-Key": "${PETS_KEY}"},
    }
    assert "pets__listPets" in (listed := command("tools", "--config", str(own)).out)
    assert "addPet" not in listed
    url = "https://pets.example/openapi.yaml"
    assert command("add", "pets", "--replace", "--openapi", url, "--config", str(own)).code == 0
    assert upstreams(own)["pets"] == {"openapi": url}


@pytest.mark.parametrize(
    ("document", "more", "said"),
    [
        ({"swagger": "2.0"}, (), "is Swagger 2.0"),
        ({**API, "servers": []}, (), "does not say where the API is"),
        (API, ("https://a.example", "https://b.example"), "give one URL"),
        (API, ("ftp://a.example",), "put -- before the command line"),
        (API, ("https://a.example", "--env", "A=b"), "no --env"),
        (None, (), "cannot be read: No such file"),
    ],
)
def test_a_document_that_is_of_no_use_is_not_added(command, own, tmp_path, document, more, said):
    file = tmp_path / "pets.json"
    if document is not None:
        file.write_text(json.dumps(document))
    ended = command("add", "pets", "--yes", "--openapi", str(file), *more)
    assert ended.code != 0
    assert said in " ".join(ended.err.split())
    assert not own.exists()
