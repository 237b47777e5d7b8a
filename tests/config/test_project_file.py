"""The file in a project's folder: it is found, it names a toolset, and it can do nothing else."""

import os

import pytest

from gateway.config.project_file import PROJECT_FILE, project_file, read_project_file, toolsets_here
from gateway.core.model.toolset_scope import problem_in
from gateway.errors import ConfigError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "project" / "src").mkdir(parents=True)
    return tmp_path / "home"


def test_the_nearest_file_counts_within_the_repository(home):
    project = home / "project"
    (home / PROJECT_FILE).write_text('toolset = "home"\n')
    assert project_file(project / "src") == home / PROJECT_FILE
    (project / PROJECT_FILE).write_text('toolset = "work"\n')
    assert project_file(project / "src") == project / PROJECT_FILE
    (project / "src" / ".git").mkdir()
    assert project_file(project / "src") is None


def test_nothing_above_the_home_folder_counts(home):
    (home.parent / PROJECT_FILE).write_text('toolset = "others"\n')
    assert project_file(home / "project") is None


def test_the_projects_toolset_is_added_to_the_chosen_one(home):
    (home / PROJECT_FILE).write_text('toolset = "work"\n')
    assert toolsets_here(None, home) == ("work",)
    assert toolsets_here("mails", home) == ("mails", "work")
    assert toolsets_here("work", home) == ("work",)
    assert toolsets_here("mails", home / "gone") == ("mails", "work")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'toolset = "a"\n[upstreams.evil]\ncommand = "sh"\n', "has the key 'upstreams'"),
        (
            b'profile = "x"',
            'it may only have one line: toolset = "NAME", for a toolset of yo',
        ),
        (b'toolset = ["a", "b"]', "must be the name of a toolset"),
        (b'toolset = ""', "must be the name of a toolset"),
        (b'toolset = "unusable: by itself"', "must be the name of a toolset"),
        (b'toolset = "' + b"a" * 201 + b'"', "must be the name of a toolset"),
        (b"toolset = ", "is not TOML"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"#" * 70_000, "has more than 65,536 bytes"),
        (b"a = " + b"[" * 60_000, "is not TOML"),
    ],
)
def test_anything_else_in_it_is_an_error_that_names_the_file(home, content, words):
    (home / PROJECT_FILE).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_project_file(home / PROJECT_FILE)
    assert words in str(caught.value)
    assert str(home / PROJECT_FILE) in str(caught.value)
    (broken,) = toolsets_here(None, home)  # a toolset that no configuration has: the host gets nothing
    assert problem_in(broken) == str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="pipes are files there")
def test_what_is_not_a_file_is_not_read(home):
    os.mkfifo(home / PROJECT_FILE)
    with pytest.raises(ConfigError, match="is not a regular file"):
        read_project_file(home / PROJECT_FILE)
    (home / PROJECT_FILE).unlink()
    (home / PROJECT_FILE).symlink_to("/nowhere")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_project_file(home / PROJECT_FILE)


def test_an_empty_file_chooses_nothing(home):
    (home / PROJECT_FILE).write_text("")
    assert toolsets_here(None, home) == ()
