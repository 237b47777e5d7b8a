"""`mcp-gateway profiles`."""

import re

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.profiles.host_profiles import PATHS


def test_every_profile_is_listed_with_the_clients_that_get_it(command):
    ended = command("profiles")
    assert ended.code == 0
    rows = {line.split()[0]: line for line in ended.out.splitlines()[1:]}
    assert set(rows) == set(builtin_profiles())
    assert "claude-ai, claude-desktop-3p, local-agent-mode-*" in rows["claude-desktop"]
    assert "named in a line" in rows["cline"]
    assert "as they are" in rows["inspector"]


def test_the_list_is_a_command_too(command):
    assert command("profiles", "list") == command("profiles")
    assert command("profiles", "list", "--json").json() == command("profiles", "--json").json()


def test_capitals_do_not_matter(command):
    assert command("profiles", "show", "Claude-CODE") == command("profiles", "show", "claude-code")


def test_the_list_is_json_for_programs(command):
    listed = command("profiles", "--json").json()
    assert [one["name"] for one in listed] == list(builtin_profiles())
    assert {one["builtin"] for one in listed} == {True}
    by_name = {one["name"]: one for one in listed}
    assert by_name["claude-code"]["match"] == [{"client_name": "claude-code"}]
    assert by_name["qwen-code"]["variants"]["qwen-code-text"]
    assert by_name["qwen-code-text"]["extends"][0] == "qwen-code"


def test_a_profile_is_shown_with_every_value_and_how_it_is_known(command):
    ended = command("profiles", "show", "claude-code")
    assert ended.code == 0
    assert all(f"\n{path} = " in ended.out for path in PATHS)
    assert (
        "text.max_chars = 45,000\n"
        "    measured on 2.1.329, checked 2026-11-20: requests captured from Claude Code 2.1.329 " in ended.out
    )
    assert 'tools.meta = { "anthropic/maxResultSizeChars" = 500,000 }' in ended.out
    assert 'audience = "ignore"\n    as it is without a profile\n' in ended.out
    assert "based on    default > passthrough" in ended.out


def test_a_profile_is_json_for_programs(command):
    shown = command("profiles", "show", "codex", "--json").json()
    assert shown["structured"]["send"] == "never"
    assert shown["evidence"]["structured.send"]["level"] == "measured"


def test_ones_own_profiles_are_among_them(command, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[profiles.mine]\ntitle = "Mine"\nextends = "codex"\nmatch = [{ user_agent = "^mine/" }]\n'
        'sets = { "image.max_edge" = 99 }\n'
    )
    ended = command("profiles", "--config", path)
    assert ended.out.splitlines()[-1].split("  ")[0] == "mine"
    assert "User-Agent /^mine/" in ended.out
    shown = command("profiles", "show", "mine", "--config", path)
    assert "image.max_edge = 99\n    set without evidence\n" in shown.out
    assert "based on    codex > default > passthrough" in shown.out


def test_a_variant_says_whose_it_is_and_for_which_models_and_its_host_says_which_it_has(command):
    host = command("profiles", "show", "qwen-code").out
    assert "\nvariant     qwen-code-text with the model qwen3-coder*\n" in host
    assert "\nvariant     qwen-code-anthropic when it is chosen by name\n" in host
    variant = command("profiles", "show", "qwen-code-text").out
    assert "\nchosen for  qwen-code with the model qwen3-coder*\n" in variant
    assert "\nbased on    qwen-code > default > passthrough\n" in variant


def test_how_long_a_host_waits_is_no_limit_of_ours(command):
    assert "\nwait.call = not known\n" in command("profiles", "show", "default").out
    assert "\nwait.call = 240.0\n" in command("profiles", "show", "claude-desktop").out


def test_ones_own_variants_are_profiles_too(command, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[profiles.mine]\nextends = "codex"\nmatch = [{ client_name = "mine", model = "big-*" }]\n'
        '[[profiles.mine.variant]]\nname = "small"\nmodels = ["*-mini"]\nsets = { "image.show" = "file" }\n'
    )
    rows = command("profiles", "--config", path).out.splitlines()
    assert "mine and model big-*" in rows[-2]
    assert rows[-1].startswith("mine-small ")
    assert "mine with the model *-mini" in rows[-1]
    assert "as the path of a file" in rows[-1]


def test_a_profile_says_what_is_known_of_pages(command):
    rows = {line.split()[0]: line for line in command("profiles").out.splitlines()}
    pages = rows["profile"].index("pages")
    shown = {name: rows[name][pages:].split("  ")[0] for name in ("cursor", "claude-code", "librechat", "zed")}
    assert shown == {"cursor": "in some sessions", "claude-code": "not shown", "librechat": "in results", "zed": "?"}
    vscode = command("profiles", "show", "vscode-copilot").out
    assert "\napps.declares = false\n    user report on 1.109.0" in vscode
    assert "\napps.shows = true\n" in vscode
    assert "\napps.shows = not known\n" in command("profiles", "show", "default").out


def test_a_profile_is_not_taken_for_that_of_the_clients_of_its_name(command, monkeypatch):
    words = "a client that calls itself 'claude-ai' gets the profile 'claude-desktop', not the one that is called "
    words += "'claude-ai'"
    for name in ("claude-ai", "claude-desktop"):
        assert f"\nnote        {words}\n" in command("profiles", "show", name).out
    assert "\nnote " not in command("profiles", "show", "codex").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert f"\nnote: {words}\n" in command("profiles").out


@pytest.mark.parametrize(
    "words",
    [
        ("read", "ui://a/x"),
        ("resources",),
        ("tools",),
        ("install", "codex"),
        ("proxy",),
        ("serve",),
    ],
)
def test_a_second_profile_is_refused_with_both_names(command, pictures, words):
    for given in (["--profile", "codex", "--profile=cursor"], ["--profile", "codex,cursor"]):
        ended = command(*words, "--config", pictures(), *given)
        assert (ended.code, ended.out) == (2, "")
        assert "Invalid value: --profile takes one name here, and is given codex, cursor: several are" in ended.err


def test_commands_about_one_host_take_no_all(command, pictures):
    for words in (("read", "ui://pics/x"), ("resources",), ("tools",)):
        ended = command(*words, "--config", pictures(), "--profile", "all")
        assert (ended.code, ended.out) == (2, "")
        assert "--profile takes one name here, and is given all" in ended.err


def test_several_profiles_are_joined_by_commas_or_repeated(command, pictures):
    config = pictures()
    wanted = ["claude-code", "cline", "cursor"]
    for given in (["claude-code,cline,Cursor"], ["claude-code", "cline, cursor,claude-code"]):
        options = [word for names in given for word in ("--profile", names)]
        called = command("call", "pics__picture", "--config", config, "--json", *options)
        assert [each["profile"] for each in called.json()] == wanted
        printed = command("call", "pics__picture", "--config", config, *options)
        assert [line for line in printed.out.splitlines() if line.startswith("== ")] == [f"== {one}" for one in wanted]


def test_a_profile_among_several_that_is_not_known_is_refused(command, pictures):
    ended = command("call", "pics__picture", "--config", pictures(), "--profile", "codex,claude-cod")
    assert (ended.code, ended.err) == (2, "error: no profile is called 'claude-cod' (did you mean 'claude-code'?)\n")
    for given in ("codex,", ",", ""):
        ended = command("call", "pics__picture", "--config", pictures(), "--profile", given)
        assert (ended.code, "a name is missing" in ended.err) == (2, True)


def test_a_profile_is_shown_by_its_name_alone(command):
    assert command("profiles", "codex").out == command("profiles", "show", "codex").out
    assert command("profiles", "codex", "--json").json()["name"] == "codex"
    assert "no profile is called 'codx'" in command("profiles", "codx").err


def test_the_hosts_with_pages_are_a_table_that_fits_a_terminal(command, monkeypatch):
    piped = {line.split()[0]: line for line in command("profiles", "--app").out.splitlines()}
    assert re.search(r" in some sessions +yes +data alone$", piped["cursor"])
    assert re.search(r" shown +\? +content and data$", piped["claude-ai"])
    assert re.search(r" \? +no +content$", piped["codex"]), "it is sent no pages, and so no structured content"
    assert "langchain" not in piped
    known = {one["name"]: one for one in command("profiles", "--app", "--json").json()}
    assert (known["goose"]["shows"], known["goose"]["declares"], known["goose"]["runs_eval"]) == (True, True, False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", command("profiles", "list", "--app").out).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:3] == ["--profile", "host", "shows"]
    assert "which hosts show pages: `mcp-gateway profiles --app`" in command("profiles").out


def test_a_misspelled_profile_is_answered_with_the_nearest(command, tmp_path):
    ended = command("profiles", "claude-desktp")
    assert (ended.code, ended.out) == (2, "")
    assert "no profile is called 'claude-desktp' (did you mean 'claude-desktop'?)" in ended.err
    config = tmp_path / "gateway.toml"
    config.write_text('[profiles.my-own]\nextends = "codex"\n')
    assert command("profiles", "--config", config, "my-own").out.startswith("my-own: ")
    assert command("profiles", "--config", config, "my-won").code == 2
    assert command("profiles", "--config", config, "--json").json()


def test_values_of_ones_own_profile_are_set_in_the_configuration(command, tmp_path):
    path = tmp_path / "gateway.toml"
    before = '# mine\n[profiles.mine]\nextends = "codex"\nsets = { "image.max_edge" = 1024 } # pixels\n'
    path.write_text(before)
    arguments = ("profiles", "set", "mine", "image.max_edge=512", "--config", path)
    shown = command(*arguments, "--dry-run").out
    assert '+sets = { "image.max_edge" = 512 } # pixels' in shown.splitlines()
    assert path.read_text() == before
    assert "mine changed" in command(*arguments).out
    assert path.read_text() == before.replace("1024", "512")
    assert "nothing is changed" in command(*arguments).out
    assert "image.max_edge = 512" in command("profiles", "show", "mine", "--config", path).out
    back = command("profiles", "set", "mine", "image.max_edge=", "--config", path)
    assert back.code == 0, back
    assert "max_edge" not in path.read_text()


def test_of_a_built_in_profile_one_of_ones_own_is_made(command, tmp_path, monkeypatch):
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", str(tmp_path / "profiles"))
    command("profiles", "set", "claude-code", "image.max_edge=512", "rescue=false", "--as", "small")
    assert {path.name for path in (tmp_path / "profiles").iterdir()} == {"small.toml"}
    shown = command("profiles", "show", "small", "--json").json()
    assert (shown["image"]["max_edge"], shown["rescue"]) == (512, False)
    command("profiles", "set", "small", "image.max_edge=100")
    assert command("profiles", "show", "small", "--json").json()["image"]["max_edge"] == 100


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["image.maxedge=3"], "image.max_edge"),
        (["image.max_edge"], "PATH=VALUE"),
        (["image.max_edge=wide"], "image.max_edge"),
        (["rescue=false", "--as", "../x"], "cannot be the name"),
        (["rescue=false", "--as", "codex"], "already"),
    ],
)
def test_values_that_do_not_fit_are_refused(command, tmp_path, monkeypatch, values, words):
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", str(tmp_path / "profiles"))
    ended = command("profiles", "set", "claude-code", *values)
    assert ended.code != 0
    assert words in ended.err
    assert not (tmp_path / "profiles").exists()
