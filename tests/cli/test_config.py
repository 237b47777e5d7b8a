"""`mcp-gateway config check`."""

import json

import pytest


@pytest.fixture
def check(command, tmp_path):
    def call(text, *more):
        path = tmp_path / "mcp-gateway.toml"
        path.write_text(text)
        ended = command("config", "check", "--config", path, *more)
        return ended.code, ended.out.replace(str(path), "FILE"), ended.err.replace(str(path), "FILE")

    return call


def test_a_configuration_in_order_is_described_without_what_may_be_secret(check):
    code, out, err = check(
        """
        http.token = "hunter2"
        [upstreams.a]
        command = "sh"
        args = ["--key", "hunter2"]
        env = { KEY = "hunter2" }
        [upstreams.b]
        url = "https://user:hunter2@example.com/hunter2"
        headers = { Authorization = "Bearer hunter2" }
        enabled = false
        """
    )
    assert (code, err) == (0, "")
    assert out == "FILE: valid\n  a: stdio, sh\n  b: url, transport auto (not enabled)\n"


def test_what_will_hardly_work_is_a_warning(check):
    code, out, _ = check('[upstreams.a]\ncommand = "no-such-program"\ncwd = "no-such-folder"\n')
    assert code == 0
    assert "warning: upstreams.a.command: there is no program 'no-such-program' that could be started\n" in out
    assert "warning: upstreams.a.cwd: there is no folder '" in out
    assert check("")[1].endswith("warning: no upstream is enabled: there will be no tools\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = \n", "error: FILE:1:5: is not TOML: invalid value\n"),
        ("[gatewy]\n", "error: FILE: gatewy: unknown key (did you mean 'gateway'?)\n"),
        ('[profiles.mine]\nsets = { "image.max" = 1 }\n', "error: profile 'mine': 'image.max' is not a value that"),
        (
            '[gateway]\nprofile = "codx"\n',
            "error: FILE: gateway.profile: there is no such profile (did you mean 'codex'?)",
        ),
        ("[profiles.codex]\n", "error: FILE: profiles.codex: a built-in profile has this name ("),
    ],
)
def test_what_is_wrong_is_said_and_the_exit_code_is_2(check, text, message):
    code, out, err = check(text)
    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_the_answer_is_json_for_programs(check):
    code, out, _ = check('[upstreams.a]\ncommand = "sh"\n', "--json")
    assert code == 0
    assert json.loads(out) == {
        "ok": True,
        "problems": [],
        "file": "FILE",
        "warnings": [],
        "upstreams": {"a": {"transport": "stdio", "enabled": True}},
    }
    code, out, err = check("a = 1\nb = 2\n", "--json")
    assert (code, err) == (2, "")
    assert [len(json.loads(out)["problems"]), json.loads(out)["ok"]] == [2, False]


def test_a_profile_that_does_not_exist_is_named_with_the_file(command, tmp_path):
    config = tmp_path / "x.toml"
    config.write_text('[gateway]\nprofile = "codx"\n')
    ended = command("config", "check", "--config", config)
    assert ended.err.startswith(f"error: {config}: gateway.profile: there is no such profile")


def test_a_command_line_in_place_of_a_command_is_explained(command, tmp_path):
    config = tmp_path / "x.toml"
    config.write_text('[upstreams.a]\ncommand = "sh -c true"\n')
    ended = command("config", "check", "--config", config)
    assert "there is no program 'sh -c true' that could be started; put the arguments into args" in ended.out
    assert ": valid" not in ended.out


def test_the_keys_of_a_table_are_listed_with_what_they_mean(command):
    listed = command("config", "keys").out
    assert "upstreams.timeout " in listed
    assert "Limits in seconds" in listed
    ended = command("config", "keys", "upstreams.timeout")
    assert ended.out.startswith("[upstreams.<name>.timeout]\nLimits in seconds")
    assert "call     seconds  300      For a whole call, whatever progress it reports." in ended.out
    assert "[upstreams.<name>.tools.timeout.<name>]" in command("config", "keys", "upstreams.tools").out


def test_a_key_is_found_in_every_table_that_has_it(command):
    ended = command("config", "keys", "http.port")
    head, row = "[http] The HTTP side of serve --http. key type default meaning", "port whole number 8484 The port;"
    assert " ".join(ended.out.split()) == f"{head} {row} 0 selects a free one."
    tables = [one["table"] for one in json.loads(command("config", "keys", "max_bytes", "--json").out)]
    assert {"store", "fetch", "audit"} <= set(tables)
    refused = command("config", "keys", "polici")
    assert refused.code == 2
    assert "there is no table or key 'polici': did you mean 'policy'" in refused.err


@pytest.mark.parametrize(
    ("given", "meant"), [("http.prt", "'port'"), ("max_byts", "'max_bytes'"), ("upstreams.timeout.stat", "'start'")]
)
def test_a_misspelt_key_is_told_from_the_others_of_its_table(command, given, meant):
    assert f"there is no table or key '{given}': did you mean {meant}" in command("config", "keys", given).err


def test_names_of_the_users_own_are_left_out_of_a_table(command):
    general = command("config", "keys", "upstreams.timeout").out
    assert command("config", "keys", "upstreams.charts.timeout").out == general
    assert command("config", "keys", "upstreams.charts").out.startswith("[upstreams.<name>]\n")
    assert "For a whole call" in command("config", "keys", "upstreams.charts.timeout.call").out
