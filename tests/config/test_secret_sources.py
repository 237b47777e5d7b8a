"""Secrets outside of the configuration: files, the keyring, and commands."""

import os
import shlex
import sys
import threading
from pathlib import Path

import keyring
import pytest

from gateway.config import secret_sources
from gateway.config.load_settings import load_settings
from gateway.config.secret_sources import keep_in_keyring, remove_from_keyring
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


def test_a_command_that_fails_is_named_with_what_it_wrote_to_stderr(tmp_path):
    told = failure(tmp_path, printing(f"import sys; print('{SECRET}'); sys.exit('sign in first')"))
    assert f"the command {sys.executable} failed with exit code 1: sign in first" in told
    assert "cannot be run: No such file or directory" in failure(tmp_path, "${cmd:absent-program x}")
    assert "this is no command line" in failure(tmp_path, '${cmd:echo "a}')
    assert "has no command" in failure(tmp_path, "${cmd:}")
    assert "the output of" in failure(tmp_path, printing("pass"))


def test_a_command_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(secret_sources, "_COMMAND_TIMEOUT", 0.5)
    assert "did not end within" in failure(tmp_path, printing("import time; time.sleep(1000)"))


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
