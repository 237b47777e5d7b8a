"""`mcp-gateway tools` and `call`, with a real upstream process."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from gateway.cli import progress
from gateway.config.builtin_profiles import builtin_profiles
from gateway.hosts.config_files.hosts import HOSTS

DEAD = '[upstreams.dead]\ncommand = "/no/such/program"\n'


def test_tools_are_listed_under_the_names_that_a_host_would_see(command, pictures):
    ended = command("tools", "--config", pictures())
    assert (ended.code, ended.err) == (0, "")
    names = [line.split()[0] for line in ended.out.splitlines()[1:]]
    assert {"pics__picture", "pics__echo"} < set(names)
    assert [name.startswith("gateway_") for name in names] == sorted(name.startswith("gateway_") for name in names)
    assert {"gateway_view", "gateway_read"} < set(names)
    assert "\x1b" not in ended.out


def test_tools_depend_on_the_host(command, pictures):
    listed = command("tools", "--config", pictures(), "--profile", "passthrough", "--json").json()
    assert listed["profile"] == "passthrough"
    assert "gateway_view" not in {tool["name"] for tool in listed["tools"]}


def test_an_upstream_that_is_slow_to_start_is_waited_for(command, pictures):
    listed = command("tools", "--config", pictures("", "6"), "--json").json()
    assert "pics__picture" in {tool["name"] for tool in listed["tools"]}


def test_an_upstream_that_is_not_there_is_named_and_costs_the_others_nothing(command, pictures):
    ended = command("tools", "--config", pictures(DEAD), "--json")
    assert ended.code == 3
    assert "pics__picture" in {tool["name"] for tool in ended.json()["tools"]}
    assert list(ended.json()["missing"]) == ["dead"]
    assert ended.err.startswith("error: upstream dead: failed: ")
    assert ended.err.count("\n") == 1


def test_a_call_shows_what_the_host_would_get_and_saves_its_pictures(command, pictures, tmp_path):
    ended = command("call", "pics__picture", "--config", pictures(), "--save", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    saved = tmp_path / "out" / "pics__picture-1.png"
    assert saved.read_bytes().startswith(b"\x89PNG")
    assert "A blue field.\\x1b]0;owned\\x07" in ended.out
    assert f"<image: image/png, 40x30, {saved.stat().st_size} bytes> saved as {saved}" in ended.out


def test_a_tool_that_the_configuration_leaves_out_is_not_only_unknown(command, pictures):
    config = pictures('[upstreams.pics.tools]\nexclude = ["ec*"]\n')
    called = command("call", "pics__echo", "--config", config)
    assert called.code == 2
    assert "exclude of [upstreams.pics.tools] leaves a tool of this name out; `mcp-gateway tools" in called.err
    assert "leaves a tool" not in command("call", "pics__nothing", "--config", config).err


def test_a_tool_that_no_pattern_includes_is_not_said_to_be_there(command, pictures):
    config = pictures('[upstreams.pics.tools]\ninclude = ["picture"]\n')
    called = command("call", "pics__nothing", "--config", config)
    assert called.code == 2
    assert "include of [upstreams.pics.tools] leaves a tool of this name out" in called.err


@pytest.mark.parametrize("takes", [True, False])
def test_a_call_names_handles_where_a_host_is_offered_a_tool_that_takes_them(command, pictures, takes, tmp_path):
    config = pictures('[upstreams.pics.tools.echo.content]\nname = "image"\n' if takes else "")
    ended = command("call", "pics__picture", "--config", config, "--json")
    assert ("its handle for tools is img_" in ended.out) is takes
    recorded = tmp_path / "result.json"
    recorded.write_text(ended.out, "utf-8")
    explained = command("explain", recorded).out
    assert ("its handle for tools is img_" in explained) is takes


def test_handles_that_a_call_prints_lead_to_content_that_is_stored_outside_memory(command, pictures, tmp_path):
    config = pictures(f'[store]\nurl = "{(tmp_path / "kept").as_uri()}"\n')
    called = command("call", "pics__picture", "--config", config, "--profile", "text-only")
    handle = re.search(r"handle (img_\w+)", called.out)
    assert handle, called
    assert called.err == ""
    got = command("content", "get", handle[1], "--config", config, "--to", tmp_path / "got.png")
    assert (got.code, got.err.count("error")) == (0, 0), got.err
    assert (tmp_path / "got.png").read_bytes().startswith(b"\x89PNG")


def test_handles_that_end_with_the_call_are_named_with_how_to_keep_them(command, pictures):
    called = command("call", "pics__picture", "--config", pictures(), "--profile", "text-only")
    handle = re.search(r"handle (img_\w+)", called.out)
    assert handle, called
    assert f"note: {handle[1]} has ended with this command, as the store is in memory: [store] url = " in called.err
    assert command("call", "pics__picture", "--config", pictures(), "--profile", "codex").err == ""


def test_arguments_are_passed_from_the_command_line_or_stdin(command, pictures, monkeypatch):
    config = pictures()
    given = {"name": "ä", "deep": [1, {"x": None}]}
    profile = ("--config", config, "--profile", "passthrough")
    assert json.loads(command("call", "pics__echo", json.dumps(given), *profile).out) == given
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(given)))
    assert json.loads(command("call", "pics__echo", "-", *profile).out) == given


def test_arguments_that_are_no_object_are_answered_with_an_example(command, pictures):
    for given in ("hello", "[1]"):
        ended = command("call", "pics__echo", given, "--config", pictures())
        assert (ended.code, ended.out) == (2, "")
        assert """object, as '{"path": "a.png"}'""" in ended.err


def test_one_call_is_shown_for_every_host(command, pictures, tmp_path):
    ended = command(
        "call", "pics__picture", "--config", pictures(), "--profile", "all", "--json", "--save", tmp_path / "out"
    )
    results = {one["profile"]: one for one in ended.json()}
    assert {"claude-code", "cline", "passthrough"} < set(results)
    assert [block["type"] for block in results["passthrough"]["result"]["content"]] == ["text", "image"]
    assert [block["type"] for block in results["cline"]["result"]["content"]] == ["text"]
    assert results["cline"]["files"] == []
    assert results["cline"]["notes"][0]["kind"] == "named"
    assert results["codex"]["files"] == [str(tmp_path / "out" / "pics__picture-codex-1.png")]


def test_hosts_that_are_sent_the_same_are_shown_together(command, pictures, tmp_path):
    ended = command(
        "call", "pics__picture", "--config", pictures(), "--profile", "all", "-v", "--save", tmp_path / "out"
    )
    groups = [line.removeprefix("== ").split(", ") for line in ended.out.splitlines() if line.startswith("== ")]
    assert sorted(name for names in groups for name in names) == sorted(builtin_profiles())
    assert len(groups) < 10
    shown = next(names for names in groups if "codex" in names)
    assert "claude-code" in shown
    assert "cline" not in shown
    block = ended.out.split(f"== {', '.join(shown)}\n")[1].split("\n== ")[0]
    assert f"saved as {tmp_path / 'out' / f'pics__picture-{shown[0]}-1.png'}" in block
    assert (tmp_path / "out" / f"pics__picture-{shown[0]}-1.png").exists()


def test_shaping_for_many_profiles_is_announced(command, pictures, monkeypatch):
    monkeypatch.setattr(progress, "ANNOUNCED_AFTER", 0)
    ended = command("call", "pics__picture", "--config", pictures(), "--profile", "all")
    assert re.search(r"^shaping for \d\d profiles(, \d+ done)?$", ended.err, re.MULTILINE)
    assert "shaping" not in command("call", "pics__picture", "--config", pictures(), "--profile", "all", "--json").err


def test_headings_of_many_hosts_fit_on_a_screen(command, pictures):
    ended = command("call", "pics__picture", "--config", pictures(), "--profile", "all")
    headings = [line for line in ended.out.splitlines() if line.startswith("== ")]
    assert all(len(line) <= 80 for line in headings)
    counts = [re.fullmatch(r"== (\d+) profiles: (.+) and (\d+) more \(-v: all\)", line) for line in headings]
    shortened = [(int(found[1]), found[2].split(", "), int(found[3])) for found in counts if found]
    assert shortened
    assert all(total == len(names) + more for total, names, more in shortened)
    assert {names[0] for _, names, _ in shortened} <= {host.profile or host.name for host in HOSTS.values()}
    alone = sum(len(line.removeprefix("== ").split(", ")) for line in headings if " more (" not in line)
    assert alone + sum(total for total, _, _ in shortened) == len(builtin_profiles())


def test_an_upstream_that_is_not_there_is_refused_before_any_is_started(command, pictures, tmp_path):
    started = tmp_path / "started"
    words = f"import pathlib; pathlib.Path({str(started)!r}).touch()"
    spy = f"[upstreams.spy]\ncommand = {json.dumps(sys.executable)}\nargs = ['-c', {json.dumps(words)}]\n"
    config = pictures(spy)
    for wrong in (
        ["call", "pcis__picture"],
        ["read", "ui://pcis/page"],
        ["tools", "pcis"],
        ["check", "pcis"],
        ["check", "--upstream", "pcis"],
        ["login", "pcis"],
        ["logout", "pcis"],
        ["pins", "diff", "pcis"],
        ["pins", "approve", "pcis"],
        ["remove", "pcis"],
        ["disable", "pcis"],
    ):
        ended = command(*wrong, "--config", config)
        assert (ended.code, ended.out) == (2, "")
        assert "there is no upstream 'pcis' (did you mean 'pics'? there are: pics, spy)" in ended.err, wrong
    assert not started.exists()


def test_only_the_tools_of_the_named_upstreams_are_listed(command, pictures, tmp_path):
    started = tmp_path / "started"
    words = f"import pathlib; pathlib.Path({str(started)!r}).touch()"
    spy = f"[upstreams.spy]\ncommand = {json.dumps(sys.executable)}\nargs = ['-c', {json.dumps(words)}]\n"
    ended = command("tools", "pics", "--config", pictures(spy), "--json")
    listed = ended.json()
    assert (ended.code, listed["missing"]) == (0, {})
    assert {tool["name"].split("__")[0] for tool in listed["tools"]} == {"pics"}
    assert not started.exists()


def test_where_nothing_is_there_to_be_saved_it_is_said(command, pictures, tmp_path):
    def told(tool, *options):
        return command("call", tool, "--config", pictures(), "--save", tmp_path / "out", *options).err

    nothing = "no pictures, sound or files are sent there"
    given = f"{nothing} (what the server gave: --profile passthrough)\n"
    assert told("pics__picture", "--profile", "cline").startswith(f"nothing to save for cline: {given}")
    assert told("pics__picture", "--profile", "cline", "--json").startswith(f"nothing to save for cline: {given}")
    assert told("pics__echo") == f"nothing to save for default: {nothing}\n"
    everybody = told("pics__picture", "--profile", "all")
    assert given in everybody
    assert everybody.startswith("nothing to save for ")
    assert " profiles: cline, " in everybody.splitlines()[0]
    assert len(everybody.splitlines()[0]) < 220
    named = told("pics__picture", "--profile", "all", "-v")
    assert given in named
    assert " cline, " in named
    assert " codex" not in named


@pytest.mark.parametrize("profile", ["default", "passthrough", "all"])
def test_a_tool_that_reports_an_error_is_exit_code_1_however_the_host_is_told(command, pictures, profile):
    ended = command("call", "pics__fail", "--config", pictures(), "--profile", profile)
    assert (ended.code, "error" in ended.err) == (1, False)
    assert "It broke." in ended.out


def test_an_upstreams_refusal_is_one_line(command, pictures):
    ended = command("call", "pics__refuse", "--config", pictures())
    assert (ended.code, ended.out, ended.err) == (1, "", "error: upstream 'pics': not today\n")


def test_a_name_from_an_upstream_decides_nothing_about_files(command, pictures, tmp_path):
    config = pictures()
    names = [tool["name"] for tool in command("tools", "--config", config, "--json").json()["tools"]]
    evil = next(name for name in names if "evil" in name)
    ended = command("call", evil, "--config", config, "--save", tmp_path / "out")
    assert ended.code == 0
    assert [path.parent.name for path in tmp_path.rglob("*.png")] == ["out"]
    sound = command("call", "pics__sound", "--config", config, "--profile", "passthrough", "--save", tmp_path / "out")
    assert "saved as" in sound.out
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".png", ".wav"]


def test_a_tool_that_nobody_has_is_exit_code_2_and_one_of_a_dead_upstream_3(command, pictures):
    config = pictures(DEAD)
    unknown = command("call", "pics__pictur", "--config", config)
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert "pics__picture" in unknown.err
    gone = command("call", "dead__tool", "--config", config)
    assert (gone.code, gone.err.count("\n")) == (3, 1)
    assert "upstream 'dead'" in gone.err


def test_a_tool_that_is_called_as_its_own_server_calls_it_is_named_as_it_is_called_here(command, pictures):
    ended = command("call", "picture", "--config", pictures())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: there is no tool named 'picture'; here it is called 'pics__picture' (")
    assert "page" not in ended.err


def test_pages_of_another_server_are_no_reason_to_call_a_tool_as_one(command, pictures):
    raw = json.dumps([str(Path(__file__).parents[1] / "servers" / "raw_stdio.py"), "apps"])
    config = pictures(f"[upstreams.raw]\ncommand = {json.dumps(sys.executable)}\nargs = {raw}\n")
    ended = command("call", "picture", "--config", config)
    assert ended.err.startswith("error: there is no tool named 'picture'; here it is called 'pics__picture' (")
    assert "only pages" not in ended.err
    assert "only pages call it by its own name" in command("call", "board", "--config", config).err


EXITS = """
[upstreams.exits]
command = "${MCP_GATEWAY_PYTHON}"
args = ["-c", "raise SystemExit('no key')"]
"""


@pytest.mark.parametrize("arguments", [("call", "exits__tool"), ("read", "ui://exits/page")])
def test_of_a_server_that_does_not_work_it_is_said_what_is_wrong_and_what_to_do(command, pictures, arguments):
    ended = command(*arguments, "--config", pictures(EXITS))
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1)
    assert ended.err.startswith("error: upstream 'exits': is not available: exited with code 1: no key (run ")
    assert "by hand to see all that it says" in ended.err
    assert "upstreams.exits.env" in ended.err
    assert "keeps trying" not in ended.err


def test_what_a_server_that_ended_said_is_shown_where_it_is_more_than_a_line(command, pictures):
    words = "import sys; sys.stderr.writelines(['first look here' + chr(10), 'then there' + chr(10)]); sys.exit(3)"
    ended = command("call", "exits__tool", "--config", pictures(EXITS.replace("raise SystemExit('no key')", words)))
    assert ended.code == 3
    assert ended.err.startswith("stderr: first look here\nstderr: then there\nerror: upstream 'exits': ")


def test_of_a_server_without_a_configuration_no_key_of_one_is_named(command):
    ended = command("call", "127-0-0-1__tool", "--upstream", "http://127.0.0.1:9/mcp")
    assert ended.code == 3
    assert "refused" in ended.err
    assert "upstreams." not in ended.err
    assert "keeps trying" not in ended.err


def test_a_handle_of_a_running_gateway_is_said_to_be_there_alone(command, tmp_path):
    config, server = tmp_path / "gateway.toml", Path(__file__).parents[1] / "servers" / "content_stdio.py"
    config.write_text(f"[upstreams.b]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps([str(server)])}\n")
    call = ("call", "b__see", '{"photo": "img_7h3k2m9q4w8x"}', "--config", config)
    alone = "a running gateway is not used, and what one keeps in memory is there alone: [store] url"
    ended = command(*call)
    assert "there is no content with the handle" in ended.out
    assert f"note: this command is a gateway of its own: {alone}" in ended.err
    assert alone in command("read", "content://img_7h3k2m9q4w8x", "--config", config).err
    store = (tmp_path / "store").as_uri()
    config.write_text(f'{config.read_text()}[store]\nurl = "{store}"\n')
    assert "running gateway" not in command(*call).err


def test_what_the_arguments_cannot_do_is_noted(command, tmp_path):
    config, server = tmp_path / "gateway.toml", Path(__file__).parents[1] / "servers" / "content_stdio.py"
    config.write_text(f"[upstreams.b]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps([str(server)])}\n")
    given = {"photo": "img_7h3k2m9q4w8x", "albun": []}
    err = command("call", "b__refuse", json.dumps(given), "--config", config).err
    assert "note: photo looks like a handle, but the schema of refuse does not mark it as content (docs/arg" in err
    assert "note: the input schema has no argument 'albun'; did you mean 'album'?\n" in err
    err = command("call", "b__refuse", '{"photo": 1}', "--config", config).err
    assert "note: the arguments do not fit the input schema: photo: 1 is not of type" in err
    assert command("call", "b__plain", '{"words": "x"}', "--config", config).err == ""
