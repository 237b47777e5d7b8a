"""Pages on the command line: what a host that shows them is offered, and what a page is sent, as the commands say."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

SERVERS = Path(__file__).parents[1] / "servers"


def without_handles(text):
    """Handles are another in every run of the gateway."""
    return re.sub(r"\b(img|aud|doc|txt|blob|file)_[0-9a-z]{12}\b", "a handle", text)


@pytest.fixture
def raw(tmp_path):
    """A configuration of one server, which registers its tools with a page only for hosts that show pages."""
    arguments = json.dumps([str(SERVERS / "raw_stdio.py"), "apps", "apps-if-declared"])
    path = tmp_path / "gateway.toml"
    path.write_text(f"[upstreams.raw]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n")
    return path


def names(ended):
    assert ended.code == 0, ended.err
    return {tool["name"]: tool for tool in ended.json()["tools"]}


def test_the_list_is_that_of_a_host_that_shows_pages(command, raw):
    assert "raw__board" not in names(command("tools", "--config", raw, "--json"))
    shown = names(command("tools", "--config", raw, "--app", "--json"))
    assert shown["raw__board"]["_meta"]["ui"]["resourceUri"] == "ui://raw/raw/board"
    assert shown["raw__chunk"]["_meta"]["ui"]["visibility"] == ["app"]
    assert "chunk" in names(command("tools", "--config", raw, "--app", "--profile", "cursor", "--json"))


def test_tools_for_pages_alone_are_marked(command, raw):
    lines = {line.split()[0]: line for line in command("tools", "--config", raw, "--app").out.splitlines()}
    assert "(only for pages)" in lines["raw__chunk"]
    assert "(only for pages)" not in lines["raw__board"]


def test_a_profile_that_shows_no_pages_is_not_made_to(command, raw, tmp_path):
    raw.write_text(raw.read_text() + '[profiles.blind]\nsets.apps.host = "never"\n')
    assert "raw__chunk" not in names(command("tools", "--config", raw, "--app", "--profile", "blind", "--json"))


@pytest.mark.parametrize("tool", ["raw__chunk", "chunk"])
def test_what_only_a_page_reads_is_shown_as_the_server_sent_it(command, raw, tool):
    ended = command("call", tool, "--config", raw, "--app", "--json")
    assert ended.code == 0, ended.err
    called = ended.json()
    assert called["result"] == called["original"]
    assert len(called["result"]["content"][0]["text"]) > 200_000
    assert any(note["kind"] == "app" for note in called["notes"])


def test_a_tool_with_a_page_sends_it_the_data_as_it_came(command, raw):
    called = command("call", "raw__board", "--config", raw, "--app", "--json").json()
    assert called["result"]["structuredContent"] == called["original"]["structuredContent"]
    everybody = command("call", "raw__board", "--config", raw, "--app", "--profile", "all", "--json").json()
    assert all("structuredContent" in one["result"] for one in everybody)


def test_a_call_says_what_the_model_and_what_the_page_reads_as_explain_does(command, raw):
    called = command("call", "raw__board", "--config", raw, "--app", "--profile", "goose").out
    recorded = raw.parent / "recorded.json"
    recorded.write_text(command("call", "raw__board", "--config", raw, "--app", "--json").out)
    explained = command("explain", recorded, "--app", "--profile", "goose").out
    readers = called[called.index("the model reads:") :]
    assert "\nthe page reads:\n" in readers
    assert readers in explained
    assert "reads" not in command("call", "raw__board", "--config", raw, "--profile", "goose").out


def test_a_page_inside_a_result_is_there_for_hosts_that_show_pages(command, raw):
    def blocks(*options):
        called = command("call", "raw__card", "--config", raw, "--json", *options).json()
        return [block["type"] for block in called["result"]["content"]]

    assert blocks("--app")[-1] == "resource"
    assert blocks() == ["text"]
    assert blocks("--profile", "vscode-copilot")[-1] == "resource"
    recorded = raw.parent / "recorded.json"
    recorded.write_text(command("call", "raw__card", "--config", raw, "--json").out)
    explained = command("explain", recorded, "--app", "--json").json()
    assert explained["result"]["content"][-1]["type"] == "resource"


@pytest.mark.parametrize("tool", ["raw__chunk", "chunk", "board"])
def test_what_only_pages_call_is_refused_as_the_host_of_the_profile_would_be(command, raw, tool):
    raw.write_text(raw.read_text().replace("apps-if-declared", "apps"))
    for options, remedy in (((), "add --app"), (("--profile", "blind", "--app"), "whose host shows pages")):
        raw.write_text(raw.read_text().replace('[profiles.blind]\nsets.apps.host = "never"\n', ""))
        raw.write_text(raw.read_text() + '[profiles.blind]\nsets.apps.host = "never"\n')
        ended = command("call", tool, "--config", raw, *options)
        assert ended.code != 0
        assert f"there is no tool named '{tool}'" in ended.err
        assert remedy in ended.err
    assert command("call", tool, "--config", raw, "--profile", "vscode-copilot", "--json").code == 0


def test_for_all_profiles_what_only_pages_call_is_shown_for_the_hosts_that_show_pages(command, raw):
    raw.write_text(raw.read_text().replace("apps-if-declared", "apps"))
    everybody = command("call", "raw__chunk", "--config", raw, "--profile", "all", "--json").json()
    names = {one["profile"] for one in everybody}
    assert "vscode-copilot" in names
    assert "codex" not in names


def test_who_is_left_out_and_why_is_one_line(command, raw):
    raw.write_text(raw.read_text().replace("apps-if-declared", "apps"))
    ended = command("call", "raw__chunk", "--config", raw, "--profile", "all", "-v")
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("left out: ag2, ")
    assert " codex, " in ended.err
    assert " vscode-copilot, " not in ended.err
    short = command("call", "raw__chunk", "--config", raw, "--profile", "all").err
    assert re.match(r"left out: \d+ profiles: claude-desktop[a-z0-9, -]* and \d+ more \(-v: all\) \(only pages", short)
    why = "only pages call this tool, and these hosts show none unless they declare it: add --app"
    assert ended.err.endswith(f" ({why})\n")
    note = (
        " are known to show no pages, or to ask for none; "
        "this is what they would get if they declared the extension (--app)\n"
    )
    assert short.endswith(f" ({why})\n")
    pretended = command("call", "raw__chunk", "--config", raw, "--profile", "all", "--app", "-v").err
    assert pretended.startswith("note: claude-code, codex, ")
    assert pretended.endswith(note)
    assert pretended.count("\n") == 1
    raw.write_text(raw.read_text() + '[profiles.blind]\nsets.apps.host = "never"\n')
    blind = command("call", "raw__chunk", "--config", raw, "--profile", "all", "--app")
    assert blind.err.endswith(f"{note}left out: blind (only pages call this tool, and these hosts show none)\n")


@pytest.mark.parametrize("tool", ["raw__chunk", "raw__board", "raw__card"])
@pytest.mark.parametrize("app", [True, False])
def test_what_is_explained_of_a_recorded_call_is_what_was_called(command, raw, tool, app):
    raw.write_text(raw.read_text().replace("apps-if-declared", "apps"))
    recorded = raw.parent / "recorded.json"
    recorded.write_text(command("call", tool, "--config", raw, "--app", "--json").out)
    options = ["--profile", "all", *(["--app"] if app else [])]
    called = command("call", tool, "--config", raw, "--json", *options)
    explained = command("explain", recorded, "--json", *options)
    results = [
        {one["profile"]: one["result"] for one in json.loads(without_handles(ended.out))}
        for ended in (called, explained)
    ]
    assert results[0] == results[1]
    of_the_hosts = [line for line in called.err.splitlines(keepends=True) if "has ended with this command" not in line]
    assert "".join(of_the_hosts) == explained.err


def test_a_recorded_result_for_pages_alone_is_refused_to_a_host_without_pages(command, raw):
    recorded = raw.parent / "recorded.json"
    recorded.write_text(command("call", "raw__chunk", "--config", raw, "--app", "--json").out)
    ended = command("explain", recorded, "--profile", "codex")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no tool named 'raw__chunk': only pages call it (add --app" in ended.err


def test_the_page_of_each_tool_is_shown(command, raw):
    ended = command("tools", "--config", raw, "--app")
    heading, *lines = ended.out.splitlines()
    assert heading.split()[:2] == ["tool", "page"]
    by_name = {line.split()[0]: line for line in lines}
    assert by_name["raw__board"].split()[1] == "ui://raw/raw/board"
    assert "ui://" not in by_name["raw__chunk"]
    assert "page" not in command("tools", "--config", raw).out.splitlines()[0].split()


def test_on_a_narrow_terminal_the_uri_of_a_page_stays_in_one_piece(command, raw, monkeypatch):
    raw.write_text(raw.read_text().replace("upstreams.raw]", "upstreams.a-server-with-rather-a-long-name]"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert "ui://a-server-with-rather-a-long-name/raw/board " in command("tools", "--config", raw, "--app").out


def test_a_tool_is_told_in_its_first_sentence_and_programs_have_all(command, raw):
    short = command("tools", "--config", raw).out
    assert "scaled down or named by a handle." in short
    rest = "The answer says how its coordinates map back to the original."
    assert rest not in short
    assert rest in command("tools", "--config", raw, "--json").out


def test_that_the_page_gets_the_shaped_content_is_said_where_something_in_it_was_cut_or_named(command, tmp_path):
    def notes(content, *options):
        path = tmp_path / "result.json"
        path.write_text(json.dumps({"content": content, "structuredContent": {"n": 1}}))
        ended = command("explain", path, *options)
        assert ended.code == 0, ended.err
        return ended.out

    said = "the page gets the shaped content too"
    long, short = ([{"type": "text", "text": "word " * size}] for size in (20_000, 2))
    sound = [{"type": "audio", "data": "UklGRiQAAABXQVZFZm10IA==", "mimeType": "audio/wav"}]
    assert said in notes(long, "--app")
    assert said in notes(sound, "--app")
    assert said not in notes(short, "--app")
    assert said not in notes(long)


def test_a_list_is_one_hosts(command, raw):
    ended = command("tools", "--config", raw, "--profile", "all")
    assert (ended.code, ended.out) == (2, "")
    assert "--profile takes one name here, and is given all" in ended.err


def test_what_a_result_says_to_nobody_is_named_by_its_keys(command, raw):
    called = command("call", "raw__board", "--config", raw, "--app")
    assert "\n(_meta: k; --json shows it)\nthe model reads:\n" in called.out
    recorded = raw.parent / "recorded.json"
    recorded.write_text(command("call", "raw__board", "--config", raw, "--app", "--json").out)
    assert "\n  -  _meta: k; --json shows it\n" in command("explain", recorded, "--app").out


def test_what_is_not_there_is_listed_by_a_command(command, raw):
    raw.write_text(raw.read_text().replace("apps-if-declared", "apps"))
    given = ("--config", raw, "--profile", "cursor", "--revision", "2025-06-18")
    suggested = shlex.join(["mcp-gateway", "tools", *map(str, given), "--app"])
    for tool in ("raw__none", "none"):
        assert f"(`{suggested}` lists the names)" in command("call", tool, "--app", *given).err
    pasted = command(*shlex.split(suggested)[1:])
    assert (pasted.code, "ui://raw/raw/board" in pasted.out) == (0, True)
    pages = f"mcp-gateway tools --app {shlex.join(map(str, given))}"
    assert f"(`{pages}` lists the pages)" in command("read", "ui://raw/none", *given).err
    assert command(*shlex.split(pages)[1:]).out == pasted.out


@pytest.mark.parametrize(
    ("options", "suggested"),
    [
        ((), " --config '{config}'"),
        (("--profile", "all"), " --config '{config}'"),
        (("--profile", "codex,cline"), " --config '{config}'"),
        (("--profile", "codex", "--tokens"), " --config '{config}' --profile codex"),
    ],
)
def test_a_list_of_names_is_suggested_with_the_options_that_it_takes(command, raw, options, suggested):
    config = raw.rename(raw.with_name("my gateway.toml"))
    ended = command("call", "raw__none", *options, "--config", config)
    assert f"(`mcp-gateway tools{suggested.format(config=config)}` lists the names)" in ended.err


def test_the_servers_of_a_command_line_are_those_of_the_suggested_one(command, http_server):
    ended = command("call", "127-0-0-1__none", "--upstream", f"{http_server}/mcp")
    assert f"(`mcp-gateway tools --upstream {http_server}/mcp` lists the names)" in ended.err
    assert command("tools", "--upstream", f"{http_server}/mcp").code == 0


def test_a_name_that_several_servers_have_is_said_with_the_full_names(command, raw):
    text = raw.read_text().replace("apps-if-declared", "apps")
    raw.write_text(text + text.replace("[upstreams.raw]", "[upstreams.other]"))
    ended = command("call", "chunk", "--app", "--config", raw)
    assert "'raw__chunk'" in ended.err
    assert "'other__chunk'" in ended.err
    assert "open the page" not in ended.err


@pytest.mark.parametrize("words", [("tools",), ("call", "slow__x")])
def test_for_a_server_that_is_not_ready_in_time_doctor_is_named(command, tmp_path, words):
    path = tmp_path / "gateway.toml"
    command_line = f"command = {json.dumps(sys.executable)}\nargs = ['-c', 'import sys; sys.stdin.read()']"
    path.write_text(f"[upstreams.slow]\n{command_line}\ntimeout.start = 0.5\n")
    ended = command(*words, "--config", path)
    assert ended.code == 3
    assert f"; `mcp-gateway doctor --config {path}` finds out more" in ended.err


EVERY = "note: hosts that declare that they show pages are treated as without them: add --app\n"


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (("--profile", "goose"), "note: goose declares that it shows pages: --app shows what it gets with them\n"),
        (
            ("--profile", "cursor,goose,codex"),
            "note: cursor, goose declare that they show pages: --app shows what they get with them\n",
        ),
        (
            ("--profile", "qwen-code"),
            "note: qwen-code declares that it shows pages, though it is known to show none: --app shows what it gets",
        ),
        (("--profile", "claude-ai"), "note: claude-ai shows pages; whether that is declared is not known: --app "),
        (("--profile", "all"), EVERY),
        (("--profile", "vscode-copilot"), ""),
        (("--profile", "codex"), ""),
        (("--profile", "goose", "--app"), ""),
        ((), ""),
    ],
)
def test_that_a_host_with_pages_is_shown_without_them_is_said_of_a_call_and_of_its_record(command, raw, options, note):
    raw.write_text(raw.read_text().replace("apps-if-declared", "apps"))
    recorded = raw.parent / "recorded.json"
    recorded.write_text(command("call", "raw__board", "--config", raw, "--app", "--json").out)
    called = command("call", "raw__board", "--config", raw, *options)
    explained = command("explain", recorded, *options)
    for ended in (called, explained):
        notes = "".join(line for line in ended.err.splitlines(keepends=True) if "with this command" not in line)
        assert ended.code == 0
        assert notes.startswith(note)
        assert bool(notes) == bool(note)


def test_for_every_host_nothing_is_said_of_pages_where_the_tool_has_none(command, pictures):
    assert "pages" not in command("call", "pics__echo", "--config", pictures(), "--profile", "all").err


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (("--app", "--profile", "codex"), "note: codex is known to show no pages, or to ask for none"),
        (("--profile", "goose"), "note: goose declares that it shows pages: --app shows what it gets with them"),
        (("--app", "--profile", "goose"), ""),
        (("--app", "--profile", "qwen-code"), ""),
        (("--app", "--profile", "vscode-copilot"), ""),
        (("--profile", "codex"), ""),
        (("--app",), ""),
    ],
)
def test_whether_a_host_really_gets_pages_is_said(command, raw, options, note):
    ended = command("tools", "--config", raw, *options)
    assert ended.code == 0
    assert ended.err.startswith(note)
    assert bool(ended.err) == bool(note)


def test_that_tools_have_pages_is_said_where_they_are_not_shown(command, raw):
    raw.write_text(raw.read_text().replace("apps-if-declared", "apps"))
    bare = ("tools", "--config", raw)
    shown = f"`mcp-gateway tools --app --config {raw}`"
    assert command(*bare).err == f"note: 1 tool has a page (MCP Apps), for hosts that show it: {shown}\n"
    assert command(*bare, "--profile", "codex").err == ""
    assert command(*bare, "--app").err == ""
