"""The folder where running gateways are found: the user's alone."""

import os

import pytest

from gateway.system.runtime_dir import existing_folders, folders, is_private, own_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")


def test_it_is_made_in_the_runtime_folder_for_the_user_alone(runtime):
    folder = own_folder()
    assert folder == runtime / "mcp-gateway"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert existing_folders() == (folder,)


def test_one_that_was_too_open_is_closed(runtime):
    (runtime / "mcp-gateway").mkdir(mode=0o755)
    assert own_folder().stat().st_mode & 0o777 == 0o700


def test_a_link_in_its_place_is_not_followed(runtime, tmp_path):
    (runtime / "mcp-gateway").symlink_to(tmp_path)
    assert own_folder() == runtime / "data" / "mcp-gateway" / "run"
    assert not is_private(runtime / "mcp-gateway")


def test_what_is_open_to_others_is_not_trusted(runtime):
    (runtime / "mcp-gateway").mkdir()
    (runtime / "mcp-gateway").chmod(0o770)
    assert existing_folders() == ()


def test_without_any_folder_the_cause_is_an_error_of_the_system(runtime):
    for folder in folders():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("in the way")
    with pytest.raises(OSError):
        own_folder()
