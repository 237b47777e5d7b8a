"""Reading mcp-gateway.toml: where it is found, what is made of it, and the one line for everything that is wrong."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config import load_settings as load_settings_module
from gateway.config.early_config import keep_introductions, read_greeting
from gateway.config.fingerprint import fingerprint
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.config.validation import NAME_RULE, NAME_RULE_OF_TOKENS
from gateway.core.tools.instructions import Introductions
from gateway.errors import ConfigError

HASH = "sha256:" + "a" * 64
TABLE = '[upstreams.files]\ncommand = "files"\n'


def write(folder: Path, text: str, name: str = "mcp-gateway.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def load(path: Path, environ=None):
    return load_settings(path, environ=environ or {}).settings


def failure(path: Path, environ=None) -> str:
    """The error's text, with the file as `FILE`."""
    with pytest.raises(ConfigError) as caught:
        load(path, environ)
    return str(caught.value).replace(str(path), "FILE")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's config folder of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_file_that_is_asked_for_comes_first_then_the_variable_the_folder_and_the_user(tmp_path, home):
    import platformdirs

    work = tmp_path / "work"
    asked = write(tmp_path, '[gateway]\nname = "asked"\n', "asked.toml")
    named = write(tmp_path, '[gateway]\nname = "named"\n', "named.toml")
    here = write(work, '[gateway]\nname = "here"\n')
    user = write(platformdirs.user_config_path("mcp-gateway", appauthor=False), '[gateway]\nname = "user"\n')
    environ = {"MCP_GATEWAY_CONFIG": str(named)}

    def name(*arguments, **options):
        return load_settings(*arguments, cwd=work, **options).settings.gateway.name

    assert name(asked, environ=environ) == "asked"
    assert name(environ=environ) == "named"
    assert name(environ={}) == "here"
    here.unlink()
    assert name(environ={}) == "user"
    user.unlink()
    loaded = load_settings(cwd=work, environ={})
    assert (loaded.path, loaded.settings.gateway.name) == (None, "mcp-gateway")


def test_a_relative_path_to_the_file_is_relative_to_the_working_directory(tmp_path):
    write(tmp_path / "a", '[gateway]\nname = "here"\n', "x.toml")
    assert load_settings(Path("a/x.toml"), environ={}, cwd=tmp_path).settings.gateway.name == "here"


def test_a_file_that_is_named_but_not_there_is_an_error(tmp_path):
    assert failure(tmp_path / "no.toml") == "FILE: there is no such file"
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={"MCP_GATEWAY_CONFIG": "no.toml"}, cwd=tmp_path)
    assert str(caught.value).endswith("no.toml: there is no such file (the file is named by $MCP_GATEWAY_CONFIG)")


def test_a_folder_in_its_place_is_an_error(tmp_path):
    assert failure(tmp_path) == "FILE: cannot be read: is a directory"


def test_relative_folders_and_programs_are_relative_to_the_file(tmp_path):
    path = write(
        tmp_path / "etc",
        """
        [upstreams.near]
        command = "./bin/server"
        cwd = "data"
        [upstreams.far]
        command = "/usr/bin/server"
        cwd = "/data"
        [upstreams.path]
        command = "python"
        args = ["./server.py"]
        [upstreams.home]
        command = "~/bin/server"
        """,
    )
    upstreams = load(path, {"HOME": "/home/me"}).upstreams
    assert upstreams["near"].command == str(tmp_path / "etc" / "bin" / "server")
    assert upstreams["near"].cwd == tmp_path / "etc" / "data"
    assert (upstreams["far"].command, upstreams["far"].cwd) == ("/usr/bin/server", Path("/data"))
    assert (upstreams["path"].command, upstreams["path"].args, upstreams["path"].cwd) == (
        "python",
        ("./server.py",),
        None,
    )
    assert upstreams["home"].command == "/home/me/bin/server"


def test_variables_are_expanded_in_every_value(tmp_path):
    path = write(
        tmp_path,
        """
        http.port = "${PORT}"
        [upstreams.a]
        url = "https://${HOST:-localhost}:${PORT}/mcp"
        headers = { Authorization = "Bearer ${TOKEN}" }
        [upstreams.b]
        command = "${TOOL:-./tool}"
        args = ["$${HOME}", "${EMPTY:-}", "${env:TOKEN}", "$PLAIN", "cost: 5$"]
        """,
    )
    settings = load(path, {"PORT": "9000", "TOKEN": "s3cret", "EMPTY": ""})
    a, b = settings.upstreams["a"], settings.upstreams["b"]
    assert settings.http.port == 9000
    assert a.url == "https://localhost:9000/mcp"
    assert a.headers == {"Authorization": "Bearer s3cret"}
    assert b.command == str(tmp_path / "tool")
    assert b.args == ("${HOME}", "", "s3cret", "$PLAIN", "cost: 5$")


def test_an_unset_variable_is_an_error_that_names_file_key_and_variable(tmp_path):
    path = write(tmp_path, TABLE + 'args = ["-k", "${MY_KEY}"]\n')
    assert failure(path) == (
        "FILE: upstreams.files.args[1]: the environment variable MY_KEY is not set "
        "(set it, or write ${MY_KEY:-default})"
    )


def test_a_variable_that_is_set_but_empty_is_no_error(tmp_path):
    assert load(write(tmp_path, TABLE + 'env = { A = "${A}" }\n'), {"A": ""}).upstreams["files"].env == {"A": ""}


def test_a_reference_that_cannot_be_read_is_an_error_with_the_way_to_write_it(tmp_path):
    path = write(tmp_path, TABLE + 'env = { A = "${not a name}" }\n')
    assert failure(path) == (
        "FILE: upstreams.files.env.A: ${ is not followed by a variable's name and } (write $${ for a literal ${)"
    )


def test_an_unset_variable_of_an_upstream_that_is_switched_off_does_not_matter(tmp_path):
    path = write(tmp_path, TABLE + 'enabled = false\nenv = { A = "${A}" }\n')
    assert not load(path).upstreams["files"].enabled


def test_what_reaches_no_server_needs_no_servers_secrets(tmp_path):
    path = write(tmp_path, TABLE + 'env = { A = "${A}", B = "b" }\n')
    loaded = load_settings(path, environ={}, reaches_upstreams=False)
    assert loaded.settings.upstreams["files"].env == {"A": "${A}", "B": "b"}
    assert not loaded.reaches_upstreams
    path = write(tmp_path, TABLE + 'env = { A = "${A}" }\n[http]\ntoken = "${TOKEN}"\n')
    with pytest.raises(ConfigError, match="TOKEN is not set") as refused:
        load_settings(path, environ={}, reaches_upstreams=False)
    assert "variable A" not in str(refused.value)


@pytest.mark.parametrize(
    "table",
    [
        '[http]\ntoken = "${A_TOKEN_OF_HERS}"\n',
        '[model_proxy]\ntoken = "${A_TOKEN_OF_HERS}"\n',
        '[access.tokens.alice]\ntoken = "${A_TOKEN_OF_HERS}"\n',
    ],
)
def test_what_serves_nobody_needs_no_tokens_of_those_who_ask(tmp_path, table):
    path = write(tmp_path, TABLE + table)
    with pytest.raises(ConfigError, match="A_TOKEN_OF_HERS is not set"):
        load_settings(path, environ={})
    loaded = load_settings(path, environ={}, serves=False)
    assert loaded.settings.upstreams["files"].enabled
    with pytest.raises(ConfigError, match="B is not set"):
        load_settings(write(tmp_path, TABLE + table + '[store]\nurl = "${B}"\n'), environ={}, serves=False)


def test_what_is_written_while_the_file_is_read_is_a_change(tmp_path, monkeypatch):
    path = write(tmp_path, TABLE)
    read = load_settings_module.read_document

    def slowly(file):
        document = read(file)
        path.write_text(TABLE + "enabled = false\n")
        return document

    monkeypatch.setattr(load_settings_module, "read_document", slowly)
    loaded = load_settings(path)
    assert loaded.settings.upstreams["files"].enabled
    assert loaded.seen != fingerprint(path)


def test_an_unset_variable_is_reported_once_even_where_the_text_would_not_fit(tmp_path):
    assert failure(write(tmp_path, 'http.port = "${PORT}"\n')).count("http.port") == 1


def test_the_token_of_the_environment_counts_where_the_file_has_none(tmp_path):
    environ = {"MCP_GATEWAY_TOKEN": "from-environment"}
    assert load(write(tmp_path, TABLE), environ).http.token == "from-environment"
    assert load(write(tmp_path, 'http.token = "from-file"\n'), environ).http.token == "from-file"
    assert load(write(tmp_path, TABLE), {"MCP_GATEWAY_TOKEN": ""}).http.token is None
    assert load_settings(environ=environ, cwd=tmp_path / "nowhere").settings.http.token == "from-environment"


SAME = "the-same-token-twice"
SAME_HASH = f"sha256:{hashlib.sha256(SAME.encode()).hexdigest()}"


@pytest.mark.parametrize(
    ("before", "table", "environ"),
    [
        ("access.tokens.a", f'[access.tokens.a]\nhash = "{SAME_HASH}"\n', {}),
        ("access.tokens.a", f'[access.tokens.a]\ntoken = " {SAME}"\n', {}),
        ("http.token", f'[http]\ntoken = "{SAME}"\n', {}),
        ("http.token", "", {"MCP_GATEWAY_TOKEN": SAME}),
    ],
)
def test_the_same_token_in_two_places_is_an_error_that_names_both(tmp_path, before, table, environ):
    more = '[access.tokens.b]\ntoken = "${B}"\nupstreams = ["docs"]\n'
    message = failure(write(tmp_path, table + more), {"B": SAME, **environ})
    assert f"access.tokens.b: is the same token as {before}" in message
    assert SAME not in message
    assert load(write(tmp_path, table + more), {"B": "another-one-altogether"}).access.tokens["b"]


def test_an_empty_token_is_an_error(tmp_path):
    path = write(tmp_path, 'http.token = "${TOKEN:-}"\n')
    assert failure(path) == "FILE: http.token: is empty (leave it out, or give one that cannot be guessed)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = \n", "FILE:1:5: is not TOML: invalid value"),
        ("\n\n[gateway\n", "FILE:3:9: is not TOML: expected ']' at the end of a table declaration"),
        ("[a]\n[a]\n", "FILE:2:3: is not TOML: cannot declare ('a',) twice"),
        (TABLE + TABLE, "FILE:3:17: is not TOML: cannot declare ('upstreams', 'files') twice"),
        ('a = "x', "FILE:1: is not TOML: unterminated string"),
        ("a = 1\na = 2", "FILE:2: is not TOML: cannot overwrite a value"),
    ],
)
def test_malformed_toml_is_one_line_with_the_place(tmp_path, text, message):
    assert failure(write(tmp_path, text)) == message


def test_a_file_that_is_no_text_is_an_error_with_the_line(tmp_path):
    path = write(tmp_path, "")
    path.write_bytes(b"# \xc3\xa4\n# \xe4\n")
    assert failure(path) == "FILE:2: is not UTF-8 text (save the file as UTF-8)"


def test_a_byte_order_mark_does_not_matter(tmp_path):
    path = write(tmp_path, "")
    path.write_bytes(b"\xef\xbb\xbf" + TABLE.encode())
    assert "files" in load(path).upstreams


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gatway]\n", "FILE: gatway: unknown key (did you mean 'gateway'?)"),
        ("[mcpServers.x]\n", "FILE: mcpServers: unknown key (did you mean 'upstreams'?)"),
        (
            "[gateway]\nxyzzy = 1\n",
            "FILE: gateway.xyzzy: unknown key "
            "(known here: name, prefix, profile, model, instructions, public_url, root_path)",
        ),
        ('[upstreams.a]\nurll = "x"\n', "FILE: upstreams.a.urll: unknown key (did you mean 'url'?)"),
        ('[upstreams.a]\nserverUrl = "x"\n', "FILE: upstreams.a.serverUrl: unknown key (did you mean 'url'?)"),
        (TABLE + "timeout.cal = 3\n", "FILE: upstreams.files.timeout.cal: unknown key (did you mean 'call'?)"),
        (
            TABLE + "tools.timeout.slow.start = 3\n",
            "FILE: upstreams.files.tools.timeout.slow.start: unknown key (known here: call, idle)",
        ),
        (
            '[[profiles.p.match]]\nclientname = "x"\n',
            "FILE: profiles.p.match[0].clientname: unknown key (did you mean 'client_name'?)",
        ),
        (
            '[[profiles.p.fact]]\nsource = "x"\nchecked = "soon"\n',
            "FILE: profiles.p.fact[0].level: is missing\n"
            "FILE: profiles.p.fact[0].checked: must be a date, such as 2026-11-20",
        ),
        (
            "[upstreams.a]\n",
            "FILE: upstreams.a: give either command (a program to start) or url (a server to connect to)",
        ),
        (
            '[upstreams.a]\ncommand = "x"\nurl = "http://y"\n',
            "FILE: upstreams.a: give either command (a program to start) or url (a server to connect to)",
        ),
        ('[upstreams.a]\nurl = "y"\n', "FILE: upstreams.a: url must begin with http:// or https://"),
        (
            '[upstreams.a]\ncommand = "x"\ntransport = "sse"\n',
            "FILE: upstreams.a: transport 'sse' needs a url, but command is given",
        ),
        (
            '[upstreams.a]\nurl = "http://y"\ntransport = "htp"\n',
            "FILE: upstreams.a.transport: must be 'stdio', 'http', 'sse' or 'auto'",
        ),
        (TABLE + 'args = "one two"\n', 'FILE: upstreams.files.args: must be a list, such as ["one", "two"]'),
        (TABLE + "env = { PORT = 1 }\n", "FILE: upstreams.files.env.PORT: must be text in quotes"),
        (
            TABLE + 'timeout.call = "long"\n',
            'FILE: upstreams.files.timeout.call: must be seconds: a number, or text such as "30s", "5m" or "1h30m"',
        ),
        (TABLE + 'timeout.call = "2d"\n', "FILE: upstreams.files.timeout.call: must be at most 86400"),
        (TABLE + "timeout.call = []\n", "FILE: upstreams.files.timeout.call: must be a number"),
        (
            '[store]\nmax_bytes = "4 gigs"\n',
            'FILE: store.max_bytes: must be bytes: a number, or text such as "500kB", "64MiB" or "4GB"',
        ),
        (TABLE + "timeout.call = 0\n", "FILE: upstreams.files.timeout.call: must be more than 0"),
        (TABLE + "timeout.call = 1e9\n", "FILE: upstreams.files.timeout.call: must be at most 86400"),
        (TABLE + 'enabled = "perhaps"\n', "FILE: upstreams.files.enabled: must be true or false"),
        ("http.port = 1.5\n", "FILE: http.port: must be a whole number"),
        ("http.port = -1\n", "FILE: http.port: must be at least 0"),
        ("http = 3\n", "FILE: http: must be a table"),
        ("upstreams = 3\n", "FILE: upstreams: must be a table"),
        ("upstreams.a = 3\n", "FILE: upstreams.a: must be a table"),
        (
            '[upstreams."my files"]\ncommand = "x"\n',
            f'FILE: upstreams."my files": is not a name for an upstream ({NAME_RULE})',
        ),
        (
            '[upstreams.my__files]\ncommand = "x"\n',
            f"FILE: upstreams.my__files: is not a name for an upstream ({NAME_RULE})",
        ),
        (
            '[upstreams.gateway]\ncommand = "x"\n',
            "FILE: upstreams: the name 'gateway' is the gateway's own: give the upstream another",
        ),
        (
            '[upstreams."a\\u001b[2J"]\ncommand = "x"\n',
            f'FILE: upstreams."a\\x1b[2J": is not a name for an upstream ({NAME_RULE})',
        ),
        (
            f'[access.tokens."a b"]\nhash = "{HASH}"\n',
            f'FILE: access.tokens."a b": is not a name for a token ({NAME_RULE_OF_TOKENS})',
        ),
        (
            f'[access.tokens.a]\nhash = "{HASH}"\nexpires = 2027-01-31T12:00:00\n',
            "FILE: access.tokens.a.expires: needs a time zone, such as the Z of 2027-01-31T12:00:00Z",
        ),
        (
            f'[access.tokens.a]\nhash = "{HASH}"\nexpires = 90\n',
            "FILE: access.tokens.a.expires: must be a date or a time, such as 2027-01-31 or 2027-01-31T12:00:00Z",
        ),
        (
            '[access.tokens.a]\ntoken = "short"\n',
            "FILE: access.tokens.a.token: has less than 16 characters, and could be guessed",
        ),
        (
            '[access.tokens.a]\ntoken = "${NO}"\n',
            "FILE: access.tokens.a.token: the environment variable NO is not set (set it, or write ${NO:-default})",
        ),
    ],
)
def test_what_is_wrong_with_a_key_is_one_line(tmp_path, text, message):
    assert failure(write(tmp_path, text)) == message


def test_everything_that_is_wrong_is_said_at_once_a_line_each(tmp_path):
    path = write(tmp_path, '[gateway]\nprofil = "x"\n[http]\nport = "a"\n[upstreams.a]\nurl = "${NO}"\n')
    assert failure(path).splitlines() == [
        "FILE: upstreams.a.url: the environment variable NO is not set (set it, or write ${NO:-default})",
        "FILE: gateway.profil: unknown key (did you mean 'profile'?)",
        "FILE: http.port: must be a whole number",
        "FILE: upstreams.a: url must begin with http:// or https://",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'http.token = 5\nhttp.port = "hunter2"\n',
        'http.port = "${SECRET}"\n',
        '[upstreams.a]\nurl = "hunter2"\n',
        '[upstreams.a]\nurl = "http://x"\ntransport = "${SECRET}"\n',
        '[upstreams.a]\nurl = "http://x"\nheaders = "hunter2"\n',
        '[upstreams.a]\ncommand = "x"\nenv = "hunter2"\ncwd = "hunter2"\nargs = "hunter2"\n',
        'gateway = "hunter2"\n',
        'x = "hunter2',
        "x = hunter2",
    ],
)
def test_no_message_shows_a_value(tmp_path, text):
    assert "hunter2" not in failure(write(tmp_path, text), {"SECRET": "hunter2"})


def test_the_python_that_runs_the_gateway_can_be_named(tmp_path):
    path = write(tmp_path, '[upstreams.a]\ncommand = "${MCP_GATEWAY_PYTHON}"\n')
    assert load(path).upstreams["a"].command == sys.executable
    assert load(path, {"MCP_GATEWAY_PYTHON": "python9"}).upstreams["a"].command == "python9"


def test_the_greeting_is_what_the_settings_will_say(tmp_path):
    path = write(tmp_path, '[gateway]\nname = "mine-${N}"\ninstructions = "Ask."\n')
    environ = {"N": "1"}
    settings = load(path, environ).gateway
    assert read_greeting(path, environ)[:2] == (settings.name, settings.instructions) == ("mine-1", "Ask.")


@pytest.mark.parametrize("text", ["gateway = 3\n", "[gateway]\nname = 3\n", "a = ", "", None])
def test_the_greeting_is_the_default_where_the_file_says_nothing_or_is_wrong(tmp_path, text):
    path = tmp_path / "no.toml" if text is None else write(tmp_path, text)
    assert read_greeting(path, {})[:2] == (Settings().gateway.name, Settings().gateway.instructions)


def test_the_greeting_is_read_without_anything_heavy():
    heavy = "{'pydantic', 'mcp', 'typer', 'rich', 'anyio', 'platformdirs', 'asyncio'}"
    code = (
        "import sys, pathlib, gateway.config.early_config as greeting;"
        f"greeting.read_greeting(pathlib.Path('no.toml'), {{}}); print(sorted({heavy} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"


def keep(path, environ, **upstreams):
    said = Introductions(tuple(upstreams.items()), (("claude-code", 20), ("x*", None)), 50, skilled=tuple(upstreams))
    keep_introductions(path, upstreams, said, environ)
    return said


def test_what_upstreams_said_in_the_last_run_is_told_in_this_one(tmp_path):
    text = """[upstreams.b]
command = "x"
[upstreams.off]
command = "x"
enabled = false
[upstreams.a]
command = "x"
"""
    path, environ = write(tmp_path, text), {"MCP_GATEWAY_CACHE": str(tmp_path / "cache")}
    assert read_greeting(path, environ).others == Introductions()
    said = keep(path, environ, b="Be b.", a="Be \ud800.")
    assert read_greeting(path, environ).others == said
    (kept,) = (tmp_path / "cache" / "catalogues").iterdir()
    if os.name == "posix":
        assert kept.stat().st_mode & 0o777 == 0o600
    path.write_text(text.replace("[upstreams.a]", "[upstreams.c]"))
    assert read_greeting(path, environ).others == Introductions()  # other upstreams, other words


def test_a_foreign_file_is_greeted_by_the_names_that_its_servers_get(tmp_path):
    path, environ = tmp_path / "hosts.json", {"MCP_GATEWAY_CACHE": str(tmp_path / "cache")}
    path.write_text('{"mcpServers": {"my files": {"command": "x"}}}')
    names = list(load(path, environ).upstreams)
    said = keep(path, environ, **dict.fromkeys(names, "Read."))
    assert read_greeting(path, environ).others == said


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"\xff", b'{"version": 9}', b'{"version": 1, "parts": [], "limits": []}', b"[" * 200_000]
    + [
        b'{"version": 1, "parts": %s, "limits": %s, "longest": %s}' % wrong
        for wrong in (
            (b"3", b"[]", b"1"),
            (b'[["a", 3]]', b"[]", b"1"),
            (b"[]", b'[["a", -1]]', b"1"),
            (b"[]", b"[]", b"0"),
        )
    ],
)
def test_a_kept_greeting_that_is_not_sound_is_as_good_as_none(tmp_path, content):
    path, environ = write(tmp_path, "[upstreams.a]\ncommand = 'x'\n"), {"MCP_GATEWAY_CACHE": str(tmp_path / "cache")}
    keep(path, environ, a="Be a.")
    (kept,) = (tmp_path / "cache" / "catalogues").iterdir()
    kept.write_bytes(content)
    assert read_greeting(path, environ).others == Introductions()


def test_a_greeting_is_forgotten_when_there_is_nothing_to_say_and_kept_nowhere_when_that_is_wanted(tmp_path):
    path, environ = write(tmp_path, ""), {"MCP_GATEWAY_CACHE": str(tmp_path / "cache")}
    keep(path, environ, a="Be a.")
    keep_introductions(path, ["a"], Introductions(), environ)
    assert list((tmp_path / "cache" / "catalogues").iterdir()) == []
    keep(path, {"MCP_GATEWAY_CACHE": ""}, a="Be a.")
    (tmp_path / "file").write_text("in the way")
    keep(path, {"MCP_GATEWAY_CACHE": str(tmp_path / "file")}, a="Be a.")
