import stat
import sys
from typing import Any

import pytest

from gateway.system.files import replacing, write_file, write_new_file


def test_a_file_is_replaced_whole_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "kept.json"
    path.write_text("before")
    path.chmod(0o644)
    write_file(path, b"after")
    assert path.read_bytes() == b"after"
    assert sys.platform == "win32" or stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_halfway_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path):
    path = tmp_path / "kept.json"
    path.write_text("before")
    broken: Any = [b"aft", "er"]
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines(broken)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_stays_that_of_whoever_came_first(tmp_path):
    path = tmp_path / "key"
    assert write_new_file(path, b"first")
    assert not write_new_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
