"""Hosts' files on disk: changed whole or not at all, kept beforehand, given back byte for byte."""

import os
import stat

import pytest

from gateway.errors import ConfigError
from gateway.hosts.config_files.backups import Backups
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.files import replace_file
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.json_edits import with_member
from gateway.hosts.config_files.launch_command import Launch, is_own, own_launch, search_path
from gateway.hosts.config_files.register_gateway import register, unregister

CURSOR = HOSTS["cursor"]
TEXT = b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "a"} // mine\r\n\t},\r\n}\r\n'


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def backups(tmp_path):
    return Backups(tmp_path / "backups")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "home" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(TEXT)
    path.chmod(0o640)
    return path


def install(host, file, launch, backups, **more):
    return register(host, file, launch, backups, **{"dry_run": False, **more})


def uninstall(host, file, backups, **more):
    return unregister(host, file, backups, **{"dry_run": False, **more})


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
@pytest.mark.parametrize("only", [False, True])
def test_every_hosts_file_is_given_back_byte_for_byte(host, only, sample, launch, backups, tmp_path):
    content = b"\xef\xbb\xbf" + sample(host.name).text.replace("\n", "\r\n").encode()
    file = tmp_path / "config"
    file.write_bytes(content)
    install(host, file, launch, backups, only=only)
    assert file.read_bytes() != content
    install(host, file, Launch("/other/mcp-gateway", ("serve",), {}), backups)
    done = uninstall(host, file, backups)
    assert (done.exact, file.read_bytes()) == (True, content)
    assert not backups.place(host.name, file).parent.exists()


def test_mode_stays_and_the_backup_is_its_owners_alone(file, launch, backups):
    done = install(CURSOR, file, launch, backups)
    assert (mode(file), done.backup.read_bytes(), mode(done.backup)) == (0o640, TEXT, 0o600)
    assert mode(done.backup.parent) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]


def test_a_symlink_is_followed_and_stays_one(file, launch, backups, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(file)
    install(CURSOR, link, launch, backups)
    assert link.is_symlink()
    assert b"mcp-gateway" in file.read_bytes()
    assert uninstall(CURSOR, file, backups).exact
    assert file.read_bytes() == TEXT


def test_a_missing_file_is_made_and_goes_again_with_its_folders(launch, backups, tmp_path):
    file = tmp_path / "deep" / "down" / "mcp.json"
    done = install(CURSOR, file, launch, backups)
    assert (mode(file), done.backup) == (0o600, None)
    undone = uninstall(CURSOR, file, backups)
    assert (undone.exact, undone.removed) == (True, True)
    assert not (tmp_path / "deep").exists()


def test_a_folder_that_is_used_meanwhile_stays(launch, backups, tmp_path):
    file = tmp_path / "deep" / "mcp.json"
    install(CURSOR, file, launch, backups)
    (tmp_path / "deep" / "other").touch()
    uninstall(CURSOR, file, backups)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["other"]


def test_an_empty_file_is_empty_again(launch, backups, tmp_path):
    file = tmp_path / "mcp.json"
    file.touch()
    install(CURSOR, file, launch, backups)
    assert uninstall(CURSOR, file, backups).exact
    assert file.read_bytes() == b""


def test_what_the_host_changed_since_stays_and_the_backup_too(file, launch, backups):
    install(CURSOR, file, launch, backups)
    file.write_bytes(file.read_bytes().replace(b'"a"}', b'"changed"}'))
    done = uninstall(CURSOR, file, backups)
    assert not done.exact
    assert file.read_bytes() == TEXT.replace(b'"a"}', b'"changed"}')
    assert done.backup.read_bytes() == TEXT
    assert backups.record("cursor", file) is None


def test_an_entry_that_somebody_else_wrote_later_has_nothing_to_do_with_an_old_backup(file, launch, backups):
    install(CURSOR, file, launch, backups)
    inside = file.read_bytes()
    file.write_bytes(inside.replace(b'"a"}', b'"changed"}'))
    uninstall(CURSOR, file, backups)
    outside = file.read_bytes()
    file.write_bytes(inside)  # by the host's own command, for example
    done = uninstall(CURSOR, file, backups)
    assert (done.backup, done.put_back, done.missing) == (None, (), ())
    assert file.read_bytes() == outside.replace(b'"changed"}', b'"a"}')


def test_servers_taken_out_come_back_though_the_host_changed_the_file(file, launch, backups):
    install(CURSOR, file, launch, backups, only=True)
    file.write_bytes(with_member(file.read_bytes().decode("utf-8"), [], "theme", 1).encode())
    uninstall(CURSOR, file, backups)
    data = Document(file.read_bytes().decode("utf-8"), "json", "FILE").data
    assert data["mcpServers"] == {"a": {"command": "a"}}
    assert data["theme"] == 1


def test_two_entries_in_one_file_are_undone_one_by_one(file, launch, backups):
    install(CURSOR, file, launch, backups)
    install(CURSOR, file, launch, backups, name="second")
    assert not uninstall(CURSOR, file, backups).exact
    assert uninstall(CURSOR, file, backups, name="second").exact
    assert file.read_bytes() == TEXT


def test_an_entry_that_a_user_took_out_by_hand_starts_a_new_backup(file, launch, backups):
    install(CURSOR, file, launch, backups)
    file.write_bytes(b"{}")
    install(CURSOR, file, launch, backups)
    place = backups.place("cursor", file)
    assert (place.read_bytes(), place.with_name("before.1").read_bytes()) == (b"{}", TEXT)
    assert uninstall(CURSOR, file, backups).exact
    assert file.read_bytes() == b"{}"


def test_a_dry_run_shows_the_change_and_makes_none(file, launch, backups):
    done = install(CURSOR, file, launch, backups, dry_run=True)
    assert '+\t\t"gateway": {' in done.diff.splitlines()
    assert file.read_bytes() == TEXT
    assert not backups.place("cursor", file).parent.exists()
    install(CURSOR, file, launch, backups)
    inside = file.read_bytes()
    assert '-\t\t"gateway": {' in uninstall(CURSOR, file, backups, dry_run=True).diff.splitlines()
    assert file.read_bytes() == inside


def test_registering_twice_changes_nothing_more(file, launch, backups):
    install(CURSOR, file, launch, backups)
    inside, when = file.read_bytes(), file.stat().st_mtime_ns
    assert install(CURSOR, file, launch, backups).diff == ""
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (inside, when)


@pytest.mark.parametrize("content", [b'{"mcpServers": ', b"\xff\xfe{\x00}\x00", b'{"mcpServers": []}'])
def test_a_file_that_is_no_configuration_is_left_untouched(content, launch, backups, tmp_path):
    file = tmp_path / "mcp.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        install(CURSOR, file, launch, backups)
    assert file.read_bytes() == content
    assert not backups.place("cursor", file).parent.exists()


def test_a_write_protected_file_and_a_folder_in_its_place_are_refused(file, launch, backups, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK)
    with pytest.raises(ConfigError, match="is write-protected"):
        install(CURSOR, file, launch, backups)
    assert file.read_bytes() == TEXT
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        install(CURSOR, tmp_path, launch, backups)


def test_a_change_by_another_program_in_between_is_not_overwritten(file):
    with pytest.raises(ConfigError, match="was changed by another program just now"):
        replace_file(file, b"new", expected=b"what it was")
    assert file.read_bytes() == TEXT
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]


def test_a_damaged_record_is_an_error_that_names_the_backup(file, launch, backups):
    install(CURSOR, file, launch, backups)
    (backups.place("cursor", file).parent / "record.json").write_text('{"a": 1}')
    with pytest.raises(ConfigError, match=r"is damaged \(its file `before` is the host's old file\)"):
        uninstall(CURSOR, file, backups)


def test_the_gateway_is_started_by_absolute_paths(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    environ = {"PATH": os.pathsep.join(["/usr/bin", "relative", "/bin", "/usr/bin", ""]), "PYTHONPATH": "/src"}
    config = tmp_path / "x.toml"
    module = own_launch(config, None, executable=str(python), environ=environ)
    assert module == Launch(
        str(python),
        ("-m", "gateway", "serve", "--config", str(config)),
        {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/src"},
    )
    script = python.with_name("mcp-gateway")
    script.touch()
    launch = own_launch(config, "codex", executable=str(python), environ=environ)
    assert launch == Launch(
        str(script), ("serve", "--config", str(config), "--profile", "codex"), {"PATH": "/usr/bin:/bin"}
    )
    assert is_own(CURSOR.entry("gateway", launch))
    assert is_own(CURSOR.entry("gateway", module))


def test_without_a_path_the_platforms_own_is_passed_on():
    assert search_path({}) == os.defpath


def hermes(tmp_path, text):
    file = tmp_path / "config.yaml"
    file.write_text(text, "utf-8")
    return file


def test_hermes_waits_for_the_gateway_and_no_longer_once_it_is_gone(tmp_path, launch, backups):
    file = hermes(tmp_path, "model: x # mine\n")
    install(HOSTS["hermes"], file, launch, backups)
    assert Document(file.read_text("utf-8"), "yaml", "FILE").data["mcp_discovery_timeout"] == 30
    file.write_text(file.read_text("utf-8") + "theme: dark\n", "utf-8")
    done = uninstall(HOSTS["hermes"], file, backups)
    assert not done.exact
    assert Document(file.read_text("utf-8"), "yaml", "FILE").data == {"model": "x", "mcp_servers": {}, "theme": "dark"}


@pytest.mark.parametrize("when", ["before", "since"])
def test_a_setting_of_the_users_own_stays_as_it_is(when, tmp_path, launch, backups):
    own = "mcp_discovery_timeout: 5\n"
    file = hermes(tmp_path, own if when == "before" else "model: x\n")
    install(HOSTS["hermes"], file, launch, backups)
    if when == "since":
        file.write_text(file.read_text("utf-8").replace("mcp_discovery_timeout: 30\n", own), "utf-8")
    assert own in file.read_text("utf-8")
    uninstall(HOSTS["hermes"], file, backups)
    assert own in file.read_text("utf-8")
