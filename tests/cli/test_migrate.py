"""`mcp-gateway migrate`: what every released version has written is read, older files are migrated, newer ones refused.

`released/VERSION` has what a gateway of that version wrote; nothing in it is ever edited.
"""

import re
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from gateway.config.load_settings import load_settings
from gateway.config.schema import FILE_VERSION
from gateway.config.store_settings import StoreSettings
from gateway.content.store.objects import ObjectStore
from gateway.content.store.records import CONTENT_VERSION
from gateway.core.profiles.matrix import MATRIX_FORMAT
from gateway.errors import ExpiredHandle, StoreUnavailable
from gateway.hosts.config_files.backups import RECORD_VERSION, Backups, digest
from gateway.serving.authorization.sql_database import VERSION
from gateway.serving.authorization.sqlite_database import SqliteDatabase, backup_path, version_of
from gateway.serving.console.call_file import CALL_FILE_VERSION
from gateway.upstream.authorization.vault import LOGINS_VERSION
from gateway.upstream.pin_files import VERSION as PINS_VERSION
from gateway.upstream.pin_files import pins_path

RELEASED_FILES = Path(__file__).parent / "released"
RELEASED = sorted(folder.name for folder in RELEASED_FILES.iterdir() if (folder / "mcp-gateway.toml").exists())
STORE_KEY = "c" * 33
"""The key of the stores in `files`."""
PASSPHRASE = f"scrypt:16384:{'A' * 22}:{'B' * 43}"
SECRETS = {
    "MCP_GATEWAY_TOKEN": "a" * 40,
    "MCP_GATEWAY_PROXY_TOKEN": "b" * 40,
    "MCP_GATEWAY_STORE_KEY": STORE_KEY,
    "MCP_GATEWAY_CONTENT_KEY": "d" * 40,
    "OPENAI_API_KEY": "e" * 20,
    "DOCUMENTS_TOKEN": "f" * 20,
    "HOME": "/home/ann",
}


@pytest.mark.parametrize("version", RELEASED)
def test_a_configuration_with_every_key_of_a_released_version_is_read(version):
    environ = {**SECRETS, "CONTENT_FOLDER": "file:///var/lib/mcp-gateway"}
    settings = load_settings(RELEASED_FILES / version / "mcp-gateway.toml", environ=environ).settings
    assert set(settings.upstreams) == {"charts", "documents", "sounds", "files"}
    assert settings.profiles["my-host"].sets == {"image.max_edge": 1024, "text.max_chars": 20000}
    assert settings.http.session_idle == 1800.0


@pytest.mark.anyio
@pytest.mark.parametrize("version", RELEASED)
async def test_content_of_a_released_version_is_found_by_its_handle(version, tmp_path):
    shutil.copytree(RELEASED_FILES / version / "store", tmp_path / "store")
    settings = StoreSettings(url=(tmp_path / "store").as_uri(), key=STORE_KEY, expires=3_600.0)
    store = ObjectStore(settings, clock=lambda: 1_795_431_300.0)  # half a minute after it was stored
    async with store.open("txt_b40pd5ejq149", owner="local") as opened:
        assert b"".join([chunk async for chunk in opened.chunks]) == b"a note of 0.1.0\n"
    await store.tidy()
    assert [one.name for one in await store.list(owner="local")] == ["note.txt", "b.bin"]
    await store.close()


@pytest.mark.parametrize("version", RELEASED)
def test_a_host_that_a_released_version_has_changed_gets_its_file_back(command, state, version):
    theirs = Path.home() / ".cursor" / "mcp.json"
    theirs.parent.mkdir()
    shutil.copy(RELEASED_FILES / version / "cursor" / "after.json", theirs)
    home = Backups.of_user().place("cursor", theirs).parent
    home.mkdir(parents=True)
    shutil.copy(RELEASED_FILES / version / "cursor" / "before", home / "before")
    record = (RELEASED_FILES / version / "cursor" / "record.json").read_text()
    record = record.replace("@FILE@", str(theirs)).replace("@WRITTEN@", digest(theirs.read_bytes()))
    (home / "record.json").write_text(record)
    ended = command("uninstall", "cursor")
    assert ended.code == 0, ended.err
    assert theirs.read_bytes() == (RELEASED_FILES / version / "cursor" / "before").read_bytes()


@pytest.mark.parametrize("version", range(1, VERSION))
def test_each_older_state_of_approved_hosts_is_copied_and_brought_up_to_date(version, tmp_path):
    path = _older_state(tmp_path / "authorization.sqlite3", version)
    before = path.read_bytes()
    database = SqliteDatabase(path)
    database.check()
    approvals = database.run_now(lambda state: state.execute("SELECT principal, claims FROM approvals").fetchall())
    database.close()
    assert [tuple(row) for row in approvals] == [("ann", "{}")]
    assert version_of(path) == VERSION
    copy = backup_path(path, version)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert version_of(copy) == version
    assert _rows(copy) == _rows(_older_state(tmp_path / "again", version))
    assert before != path.read_bytes()


def test_the_command_shows_what_is_older_and_writes_only_if_asked_to(command, state):
    path = _older_state(state / "authorization.sqlite3", 1)
    Path("mcp-gateway.toml").write_text("version = 1\n")
    looked = command("migrate")
    assert looked.code == 1, looked.err
    assert f"older than {VERSION}: `mcp-gateway migrate --write`" in looked.out
    assert version_of(path) == 1
    written = command("migrate", "--write", "--json")
    assert written.code == 0, written.err
    kept = {entry["what"]: entry for entry in written.json()}
    assert kept["configuration"]["format"] == 1
    hosts = kept["approved hosts"]
    assert (hosts["format"], hosts["known"], hosts["copy"]) == (VERSION, VERSION, str(backup_path(path, 1)))
    assert command("migrate").code == 0


def test_without_files_the_command_says_so(command, state):
    ended = command("migrate")
    assert (ended.code, ended.out) == (0, "")
    assert "keeps nothing here yet" in ended.err


def test_the_docs_have_the_formats_of_this_version():
    page = (Path(__file__).parents[2] / "docs" / "upgrading.md").read_text()
    said = dict(re.findall(r"^\| (?:the )?([\w' ]+?)(?:,.*?| that .*?)? \| .* \| (\d+) \|$", page, re.MULTILINE))
    assert said == {
        "configuration": str(FILE_VERSION),
        "hosts": str(VERSION),
        "logins to servers": str(LOGINS_VERSION),
        "pins": str(PINS_VERSION),
        "past calls of the console": str(CALL_FILE_VERSION),
        "records of hosts' files": str(RECORD_VERSION),
        "stored content": str(CONTENT_VERSION),
        "files of calibrations": str(MATRIX_FORMAT),
    }


def _newer_configuration(state):
    Path("mcp-gateway.toml").write_text("version = 2\nunheard_of = true\n")
    return ("config", "check")


def _newer_logins(state):
    (state / "logins.json").write_text('{"version": 2, "logins": {}}')
    return ("logout", "crm")


def _newer_pins(state):
    settings = load_settings().settings.upstreams["crm"]
    path = pins_path(state / "pins", "crm", settings)
    path.parent.mkdir()
    path.write_text('{"version": 2, "tools": []}')
    return ("pins", "approve", "crm")


def _newer_hosts(state):
    connection = sqlite3.connect(state / "authorization.sqlite3")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    return ("access", "ls")


def _newer_record(state):
    theirs = Path.home() / ".cursor" / "mcp.json"
    theirs.parent.mkdir()
    theirs.write_text('{"mcpServers": {"gateway": {"command": "mcp-gateway", "args": ["serve"]}}}')
    home = Backups.of_user().place("cursor", theirs).parent
    home.mkdir(parents=True)
    (home / "record.json").write_text('{"version": 2, "names": {}}')
    return ("uninstall", "cursor")


@pytest.mark.parametrize("newer", [_newer_configuration, _newer_logins, _newer_pins, _newer_hosts, _newer_record])
def test_what_a_newer_gateway_wrote_is_refused_in_words_and_left_as_it_is(command, state, newer):
    text = '[upstreams.crm]\nurl = "https://crm.example/mcp"\n'
    Path("mcp-gateway.toml").write_text(
        f"{text}[access.authorization_server]\n[access.people.ann]\nhash = '{PASSPHRASE}'\n"
    )
    words = newer(state)
    before = {path: path.read_bytes() for path in Path.home().rglob("*") if path.is_file()}
    ended = command(*words)
    assert ended.code in (1, 2)
    assert "written by a newer version of the gateway (format " in ended.err
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.anyio
async def test_content_of_a_newer_gateway_is_neither_shown_nor_removed(tmp_path):
    settings = StoreSettings(url=(tmp_path / "store").as_uri(), key=STORE_KEY)
    store = ObjectStore(settings)
    kept = await store.put(b"words", owner="local", media_type="text/plain")
    other = await store.put(b"more words", owner="local", media_type="text/plain")
    (record,) = (tmp_path / "store" / "about").glob(f"*/{kept.handle.removeprefix('txt_')}")
    record.write_text(record.read_text().replace('"version": 1', '"version": 2, "more": []'))
    later = ObjectStore(settings, clock=lambda: time.time() + 10 * settings.expires)
    for one in (store, later):
        await one.tidy()
        with pytest.raises(StoreUnavailable, match="newer version"):
            await one.metadata(kept.handle, owner="local")
    assert await store.list(owner="local") == ()
    with pytest.raises(ExpiredHandle):
        await later.metadata(other.handle, owner="local")
    assert record.exists()
    assert [path.read_bytes() for path in (tmp_path / "store" / "bytes").glob("*/*")] == [b"words"]
    await store.close()
    await later.close()


@pytest.fixture
def state(monkeypatch):
    """A state folder in the home, where the commands of this test look."""
    folder = Path.home() / "state"
    folder.mkdir()
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(Path.home() / "data"))
    return folder


def _older_state(path, version):
    connection = sqlite3.connect(path)
    connection.executescript((RELEASED_FILES / "authorization" / f"format-{version}.sql").read_text())
    connection.close()
    return path


def _rows(path):
    connection = sqlite3.connect(path)
    rows = list(connection.iterdump())
    connection.close()
    return rows
