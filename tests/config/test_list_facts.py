"""The facts under which a list may be given again: whatever may decide a list and has changed makes them others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config.list_facts import CALIBRATE_FILE, read_list_facts
from gateway.system.runtime_dir import own_folder

CONFIG = '[pins]\nmode = "${MODE:-off}"\n[upstreams.one]\nurl = "http://127.0.0.1:9"\n'
LOGIN = {"upstream": "one", "principal": "local", "sealed": "a token"}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "gateway.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def environ(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir(mode=0o700)
    for name in ("state", "profiles"):
        (tmp_path / name).mkdir()
    return {"MCP_GATEWAY_STATE": str(tmp_path / "state"), "MCP_GATEWAY_PROFILES": str(tmp_path / "profiles")}


def digest(config, environ, arguments=("serve",), toolsets=()):
    facts = read_list_facts(config, environ, arguments, toolsets)
    assert facts is not None
    return facts.digest


def written(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_fact_counts(config, environ, tmp_path):
    changes = {
        "nothing": lambda: None,
        "a profile": lambda: written(tmp_path / "profiles" / "mine.toml"),
        "its content": lambda: written(tmp_path / "profiles" / "mine.toml", "x"),
        "no profile": lambda: (tmp_path / "profiles" / "mine.toml").unlink(),
        "pins": lambda: written(tmp_path / "state" / "pins" / "one.json", "{}"),
        "a login": lambda: written(tmp_path / "state" / "logins.json", json.dumps({"logins": [LOGIN]})),
        "a request to calibrate": lambda: written(own_folder() / CALIBRATE_FILE),
        "a variable": lambda: environ.update(MODE="hold"),
        "the configuration": lambda: config.write_text(CONFIG + "# more\n"),
    }
    seen = set[str]()
    for what, change in changes.items():
        change()
        now = digest(config, environ)
        assert now not in seen, what
        seen.add(now)
    for arguments, toolsets in ((("serve", "--profile", "cline"), ()), (("serve",), ("few",))):
        now = digest(config, environ, arguments, toolsets)
        assert now not in seen
        seen.add(now)
    other = tmp_path / "other.toml"
    other.write_text(config.read_text())
    assert digest(other, environ) not in seen


def test_the_first_gateway_after_a_login_has_the_same_facts_as_the_next(config, environ):
    """The runtime folder is gone after every restart of the machine, and the first gateway makes it."""
    before = digest(config, environ)
    own_folder()  # makes it
    assert digest(config, environ) == before


def test_a_configuration_of_the_same_content_that_was_written_again_is_another(config, environ):
    before = digest(config, environ)
    os.utime(config, (0, 0))
    assert digest(config, environ) != before


def test_what_decides_no_list_does_not_count(config, environ, tmp_path):
    written(tmp_path / "state" / "logins.json", json.dumps({"logins": [LOGIN]}))
    before = digest(config, environ)
    environ["OTHER"] = "1"
    written(tmp_path / "state" / "logins.json", json.dumps({"logins": [{**LOGIN, "sealed": "renewed"}]}))
    written(tmp_path / "profiles.txt")
    assert digest(config, environ) == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda config, _: config.unlink(),
        lambda config, _: (config.unlink(), config.mkdir()),
        lambda config, _: config.write_bytes(b"#" * (4 * 1024 * 1024 + 1)),
        lambda _, folder: written(folder / "state" / "logins.json", "[" * 100_000),
        lambda _, folder: [written(folder / "profiles" / f"{number}.toml") for number in range(1_001)],
        pytest.param(
            lambda config, _: (config.unlink(), os.mkfifo(config)),
            marks=pytest.mark.skipif(os.name != "posix", reason="pipes with names are POSIX's"),
        ),
    ],
    ids=["missing", "folder", "huge", "deep", "many", "pipe"],
)
def test_facts_that_are_not_sure_are_none(config, environ, tmp_path, spoil):
    spoil(config, tmp_path)
    assert read_list_facts(config, environ, ()) is None


def test_the_last_change_of_a_file_is_known(config, environ, tmp_path):
    for path, seconds in ((tmp_path / "profiles" / "mine.toml", 2_000_000_000), (config, 1_000_000_000)):
        written(path)
        os.utime(path, (seconds, seconds))
    facts = read_list_facts(config, environ, ())
    assert facts is not None
    assert facts.changed == 2_000_000_000


def test_reading_them_loads_nothing_heavy():
    code = "import sys, gateway.config.list_facts, gateway.serving.mcp.early_lists as _; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert {"mcp", "pydantic", "anyio", "asyncio", "inspect"}.isdisjoint(done.stdout.split())
