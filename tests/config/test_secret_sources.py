"""Secrets outside of the configuration: files, the keyring, and commands."""

import os
import shlex
import sys
import threading
import time
from pathlib import Path

import keyring
import psutil
import pytest

from gateway.config import secret_sources
from gateway.config.load_settings import load_settings
from gateway.config.secret_sources import keep_in_keyring, remove_from_keyring
from gateway.config.secrets import all_secrets, upstream_secrets
from gateway.errors import ConfigError
from tests.keyring_file import FileKeyring

SECRET = "s3cr3t-canary"


@pytest.fixture(autouse=True)
def ring(tmp_path, monkeypatch) -> Path:
    """The file of a keyring of its own."""
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "ring.json"))
    monkeypatch.setattr(keyring, "get_keyring", FileKeyring)
    return tmp_path / "ring.json"


def header(folder: Path, value: str, environ=None) -> str:
    """The header as it is sent, of a configuration with this value."""
    path = folder / "mcp-gateway.toml"
    path.write_text(f"[upstreams.a]\nurl = 'http://127.0.0.1:1/'\nheaders = {{ X = '''{value}''' }}\n", "utf-8")
    environ = {"PATH": os.environ["PATH"], **(environ or {})}
    return load_settings(path, environ=environ).settings.upstreams["a"].headers["X"]


def failure(folder: Path, value: str, environ=None) -> str:
    with pytest.raises(ConfigError) as caught:
        header(folder, value, environ)
    assert SECRET not in str(caught.value)
    return str(caught.value).replace(str(folder), "FOLDER")


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def printing(code: str) -> str:
    return "${cmd:" + shlex.join([sys.executable, "-c", code]) + "}"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_file_is_relative_to_the_configuration_and_its_line_end_is_left_out(tmp_path, end):
    (tmp_path / "token.txt").write_bytes(f"{SECRET}{end}".encode())
    assert header(tmp_path, "Bearer ${file:token.txt}") == f"Bearer {SECRET}"
    assert header(tmp_path, f"${{file:{tmp_path}/token.txt}}") == SECRET
    assert header(tmp_path, "${file:~/token.txt}", {"HOME": str(tmp_path)}) == SECRET


def test_a_file_that_is_no_secret_is_refused(tmp_path):
    assert failure(tmp_path, "${file:absent}") == (
        "FOLDER/mcp-gateway.toml: upstreams.a.headers.X: the file FOLDER/absent cannot be read: "
        "No such file or directory (create it, readable by this user alone)"
    )
    (tmp_path / "empty").write_text("\n", "utf-8")
    assert "the file FOLDER/empty is empty" in failure(tmp_path, "${file:empty}")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in failure(tmp_path, "${file:binary}")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(10_000_000)
    assert "has more than" in failure(tmp_path, "${file:large}")
    assert "cannot be read" in failure(tmp_path, "${file:.}")


def test_an_entry_of_the_keyring_is_stored_read_and_removed(tmp_path):
    keep_in_keyring("docs", SECRET)
    keep_in_keyring("other program/docs", "other")
    assert header(tmp_path, "${keyring:docs} ${keyring:other program/docs}") == f"{SECRET} other"
    remove_from_keyring("docs")
    assert failure(tmp_path, "${keyring:docs}").endswith(
        "the keyring has no entry docs (`mcp-gateway secret set docs` stores it)"
    )


def test_a_locked_keyring_is_said(tmp_path, ring):
    ring.write_text("locked", "utf-8")
    assert "the keyring cannot be used: KeyringLocked: the collection is locked (unlock it" in failure(
        tmp_path, "${keyring:docs}"
    )


def test_a_keyring_that_waits_for_somebody_does_not_hold_up_the_gateway(tmp_path, monkeypatch):
    answer = threading.Event()
    monkeypatch.setattr(FileKeyring, "_entries", lambda _: answer.wait() and {})
    monkeypatch.setattr(secret_sources, "_KEYRING_TIMEOUT", 0.01)
    assert "the keyring did not answer" in failure(tmp_path, "${keyring:docs}")
    answer.set()


def test_a_command_prints_the_secret(tmp_path):
    assert header(tmp_path, "Bearer " + printing(f"print('{SECRET}')")) == f"Bearer {SECRET}"
    assert header(tmp_path, printing("import os; print(os.environ['ASKED'])"), {"ASKED": SECRET}) == SECRET
    assert header(tmp_path, printing("import os; print(os.getcwd())")) == str(tmp_path)


def test_a_command_that_fails_is_named_with_its_exit_code_and_nothing_that_it_wrote(tmp_path):
    told = failure(tmp_path, printing(f"import sys; print('{SECRET}'); sys.exit('{SECRET}')"))
    assert f"the command {sys.executable} failed with exit code 1 (run it" in told
    assert "cannot be run: No such file or directory" in failure(tmp_path, "${cmd:absent-program x}")
    assert "this is not a command line" in failure(tmp_path, '${cmd:echo "a}')
    assert "has no command" in failure(tmp_path, "${cmd:}")
    assert "the output of" in failure(tmp_path, printing("pass"))


def test_a_command_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(secret_sources, "_TIMEOUT", 0.5)
    assert "did not end within" in failure(tmp_path, printing("import time; time.sleep(1000)"))


def test_all_commands_together_have_one_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr(secret_sources, "_TIMEOUT", 0.5)
    hangs, leaves_a_mark = printing("import time; time.sleep(1000)"), printing("open('ran', 'w')")
    text = f"[http]\ntoken = '''{hangs}'''\n[store]\nkey = '''{leaves_a_mark}'''\n"
    (tmp_path / "mcp-gateway.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"did not end within[^\n]*\n.*was not run: the secrets before it took"):
        load_settings(tmp_path / "mcp-gateway.toml", environ={"PATH": os.environ["PATH"]})
    assert not (tmp_path / "ran").exists()


def test_a_command_that_prints_on_and_on_is_ended(tmp_path):
    endless = "while True: print('x' * 10_000)"
    assert "printed more than 66 KB" in failure(tmp_path, printing(endless))


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
def test_what_a_command_leaves_in_the_background_is_ended_and_not_waited_for(tmp_path):
    background = "[sys.executable, '-c', 'import time; time.sleep(1000)']"
    pid = int(header(tmp_path, printing(f"import subprocess, sys; print(subprocess.Popen({background}).pid)")))
    while is_running(pid):
        time.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="named pipes are POSIX's")
def test_only_a_regular_file_holds_a_secret(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "the file FOLDER/pipe cannot be read: it is not a regular file" in failure(tmp_path, "${file:pipe}")
    assert "it is not a regular file" in failure(tmp_path, "${file:/dev/null}")


@pytest.mark.parametrize("value", ["${file:a\\u0000b}", "${cmd:echo a\\u0000b}", "${cmd:a\\u0000b}"])
def test_a_nul_is_said_to_be_invalid(tmp_path, value):
    (tmp_path / "mcp-gateway.toml").write_text(f'[http]\ntoken = "{value}"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"http\.token: the (file|command) .* invalid"):
        load_settings(tmp_path / "mcp-gateway.toml", environ={"PATH": os.environ["PATH"]})


@pytest.mark.parametrize("content", [f"{SECRET}\n\n", f"{SECRET}\r\nX-Other: 1", f"{SECRET}\x1b[2J", f"{SECRET}\x85"])
def test_a_secret_is_one_line_of_text(tmp_path, content):
    (tmp_path / "token").write_bytes(content.encode())
    assert "the secret of ${file:...} has a second line or another control character" in failure(
        tmp_path, "${file:token}"
    )


@pytest.mark.parametrize("value", ["${cmd:echo ${HOME}}", "${file:${HOME}/a}", "${NONE:-${HOME}}"])
def test_a_reference_within_another_is_refused(tmp_path, value):
    assert "headers.X: a reference is within another one" in failure(tmp_path, value, {"HOME": str(tmp_path)})


def test_a_secret_is_hidden_wherever_it_stands(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).write_text(f"{SECRET}-{name}\n", "utf-8")
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(
        "[describe]\ncommand = ['say', '${file:other}']\n"
        "[upstreams.a]\ncommand = 'a'\nargs = ['--dsn=${file:one}']\n[upstreams.b]\ncommand = 'b'\n",
        "utf-8",
    )
    settings = load_settings(path, environ={}).settings
    assert {f"{SECRET}-one", f"{SECRET}-other"} <= set(all_secrets(settings))
    assert set(upstream_secrets(settings.upstreams["a"])) == {f"{SECRET}-one"}
    assert set(upstream_secrets(settings.upstreams["b"])) == set()


def test_each_secret_is_read_once_and_reported_wherever_it_is_missing(tmp_path):
    code = "open('asked', 'a').write('x'); print(1)"
    assert header(tmp_path, printing(code) * 3) == "111"
    assert (tmp_path / "asked").read_text("utf-8") == "x"


def test_a_disabled_upstream_needs_no_secret(tmp_path):
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(
        "[upstreams.a]\nenabled = false\nurl = 'http://127.0.0.1:1/'\nheaders = { X = '${keyring:absent}' }\n", "utf-8"
    )
    assert load_settings(path, environ={}).settings.upstreams["a"].headers["X"] == "${keyring:absent}"


def test_what_another_program_writes_is_not_run(tmp_path):
    path = tmp_path / "servers.json"
    path.write_text('{"mcpServers": {"a": {"command": "a", "args": ["${cmd:touch ran}"]}}}', "utf-8")
    assert load_settings(path, environ={}).settings.upstreams["a"].args == ("${cmd:touch ran}",)
    assert not (tmp_path / "ran").exists()


PEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\n-----END PRIVATE KEY-----\n"


def test_a_variable_may_have_many_lines_and_each_of_them_is_hidden(tmp_path):
    (tmp_path / "key.pem").write_text(PEM, "utf-8")
    path = tmp_path / "mcp-gateway.toml"
    path.write_text("[upstreams.a]\ncommand = 'x'\nenv = { SIGNING = '${file:key.pem}' }\n", "utf-8")
    settings = load_settings(path).settings
    assert settings.upstreams["a"].env["SIGNING"] == PEM.removesuffix("\n")
    for hidden in (set(all_secrets(settings)), set(upstream_secrets(settings.upstreams["a"]))):
        assert {PEM.removesuffix("\n"), "MC4CAQAwBQYDK2VwBCIEIA"} <= hidden
        assert "-----BEGIN PRIVATE KEY-----" not in hidden


@pytest.mark.parametrize("line", ["args = ['${file:key.pem}']", "cwd = '${file:key.pem}'"])
def test_nothing_else_may_have_many_lines(tmp_path, line):
    (tmp_path / "key.pem").write_text(PEM, "utf-8")
    (tmp_path / "mcp-gateway.toml").write_text(f"[upstreams.a]\ncommand = 'x'\n{line}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"only variables in env may have many lines"):
        load_settings(tmp_path / "mcp-gateway.toml")


@pytest.mark.parametrize("odd", ["\x1b[2J", "\x00", "\x85"])
def test_no_secret_has_control_characters_besides_line_ends(tmp_path, odd):
    (tmp_path / "key").write_text(f"a{odd}b", "utf-8")
    (tmp_path / "mcp-gateway.toml").write_text(
        "[upstreams.a]\ncommand = 'x'\nenv = { SIGNING = '${file:key}' }\n", "utf-8"
    )
    with pytest.raises(ConfigError, match="another control character"):
        load_settings(tmp_path / "mcp-gateway.toml")
