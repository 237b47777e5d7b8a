"""The folder in which gateways are found: the user's own, or for root that of a service."""

import os
import sys
from pathlib import Path

import pytest

from gateway.system.runtime_dir import existing_folders, own_folder, passed_over

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the runtime folder of Linux")
ROOT = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root may give folders away")
SOMEBODY = 65_534


@pytest.fixture
def named(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return folder


def test_the_named_folder_is_used_if_it_is_the_users_own(named):
    assert own_folder() == named / "mcp-gateway"
    assert existing_folders() == (named / "mcp-gateway",)
    assert passed_over() is None


def test_it_is_said_if_the_named_folder_is_open_to_others(named):
    named.chmod(0o755)
    used = own_folder()
    assert used.parent != named
    assert passed_over() == (
        f"$XDG_RUNTIME_DIR ({named}) is not this user's own folder with mode 700, so {used} is used in its place"
    )


def of_service(named: Path) -> Path:
    folder = named / "mcp-gateway"
    folder.mkdir(mode=0o700)
    os.chown(named, SOMEBODY, SOMEBODY)
    os.chown(folder, SOMEBODY, SOMEBODY)
    return folder


@ROOT
def test_root_finds_what_a_service_runs_in_a_folder_of_its_own_and_serves_elsewhere(named):
    folder = of_service(named)
    assert existing_folders()[0] == folder
    assert passed_over() is None
    assert own_folder() != folder


@ROOT
@pytest.mark.parametrize("open_to_others", ["", "mcp-gateway"])
def test_root_does_not_trust_a_folder_that_others_can_write_to(named, open_to_others):
    folder = of_service(named)
    (named / open_to_others).chmod(0o777)
    assert folder not in existing_folders()
