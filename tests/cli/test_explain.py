"""`mcp-gateway explain`."""

import io
import json
import re

import pytest

from gateway.config.builtin_profiles import builtin_profiles

RESULT = {
    "content": [
        {"type": "text", "text": "hello \x1b[31mred"},
        {"type": "audio", "data": "UklGRiQAAABXQVZFZm10IA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a\x1b[2J.txt", "name": "a"},
    ],
    "structuredContent": {"n": 1},
}


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(RESULT))
    return path


def test_every_step_is_shown(command, recorded):
    ended = command("explain", recorded)
    assert (ended.code, ended.err) == (0, "")
    parts = [line for line in ended.out.splitlines() if line and not line.startswith(" ")]
    assert parts[:-1] == ["== default", "envelope:", "media and store work:", "notes:", "sent:"]
    assert re.fullmatch(r"costs about \d+ tokens, .*by the formula of .* \(--tokens shows more\)", parts[-1])
    assert "  1  audio: audio/wav, 16 bytes\n" in ended.out
    assert ": keep audio/wav -> handle " in ended.out
    assert '  -  structured content: {"n": 1}' in ended.out


def test_work_on_media_is_left_out_where_there_was_none(command, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"content": [{"type": "text", "text": "x" * 2_000_000}]}))
    ended = command("explain", path, "--profile", "claude-code")
    headings = [line for line in ended.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["envelope:", "media and store work:", "notes:", "sent:"]
    path.write_text(json.dumps({"content": [], "structuredContent": {"n": 1}}))
    ended = command("explain", path, "--profile", "cline")
    headings = [line for line in ended.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["envelope:", "notes:", "sent:"]


def test_the_profile_of_the_configuration_is_taken_where_none_is_named(command, recorded, tmp_path):
    config = tmp_path / "mcp-gateway.toml"
    config.write_text('[gateway]\nprofile = "codex"\n')
    assert command("explain", recorded, "--config", config).out.startswith("== codex\n")
    assert command("explain", recorded, "--config", config, "--profile", "cline").out.startswith("== cline\n")


def test_a_result_that_is_sent_as_it_is_is_told(command, recorded):
    unchanged = "nothing had to be changed for this host\n"
    assert unchanged not in command("explain", recorded).out
    recorded.write_text(json.dumps({"content": [{"type": "text", "text": "a"}]}))
    assert unchanged in command("explain", recorded).out


def test_nothing_from_the_result_is_obeyed_by_the_terminal(command, recorded):
    for profile in ("all", "passthrough"):
        assert "\x1b" not in command("explain", recorded, "--profile", profile).out


def test_a_result_comes_from_stdin_too_and_out_of_a_json_rpc_response(command, recorded, monkeypatch):
    plain = command("explain", recorded, "--profile", "codex").out
    response = {"jsonrpc": "2.0", "id": 1, "result": RESULT}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(response)))
    handles = {word for word in plain.split() if word.startswith("aud_")}
    out = command("explain", "-", "--profile", "codex").out
    again = {word for word in out.split() if word.startswith("aud_")}
    assert len(out.splitlines()) == len(plain.splitlines())
    assert handles
    assert again


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_result_that_is_piped_in_needs_no_name(command, monkeypatch, arguments):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(RESULT)))
    ended = command("explain", *arguments, "--profile", "codex")
    assert (ended.code, ended.err) == (0, "")
    assert "audio/wav" in ended.out


def test_in_a_terminal_nothing_is_waited_for(command, monkeypatch):
    terminal = io.StringIO(json.dumps(RESULT))
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    ended = command("explain")
    assert (ended.code, ended.out, terminal.tell()) == (2, "", 0)
    assert (
        ended.err
        == "error: Missing argument 'FILE': a recorded result; or pipe one in. (--help shows how it is used)\n"
    )


@pytest.mark.parametrize("profile", ["passthrough", "all", "cline"])
def test_what_call_printed_for_programs_is_explained_from_what_the_server_gave(command, monkeypatch, pictures, profile):
    called = command("call", "pics__picture", "--json", "--profile", profile, "--config", pictures())
    monkeypatch.setattr("sys.stdin", io.StringIO(called.out))
    explained = command("explain", "--profile", "codex", "--json")
    assert (explained.code, explained.err) == (0, "")
    assert [block["type"] for block in explained.json()["result"]["content"]] == ["text", "image"]


def test_a_result_that_a_profile_has_shaped_is_said_to_be_one(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"profile": "cline", "result": RESULT})))
    explained = command("explain")
    assert explained.code == 0
    assert explained.err == "note: this result was shaped for 'cline' already; what the server gave is not known\n"


def test_equal_explanations_are_printed_once(command, recorded):
    out = command("explain", recorded, "--profile", "all", "--verbose").out
    headings = [line.removeprefix("== ").split(", ") for line in out.splitlines() if line.startswith("== ")]
    assert sorted(name for names in headings for name in names) == sorted(builtin_profiles())
    assert len(headings) < len(builtin_profiles()) / 2
    bodies = re.split(r"^== .*$", out, flags=re.MULTILINE)[1:]
    assert len(set(bodies)) == len(bodies)


def test_the_steps_are_json_for_programs(command, recorded):
    explained = command("explain", recorded, "--json", "--profile", "passthrough").json()
    assert explained["profile"] == "passthrough"
    assert explained["result"] == RESULT
    assert [block["type"] for block in explained["envelope"]["blocks"]] == ["text", "audio", "resource_link"]
    assert explained["effects"] == []


def test_effects_are_told_without_their_content(command, recorded):
    explained = command("explain", recorded, "--json").json()
    assert [effect["effect"] for effect in explained["effects"]] == ["Keep", "Probe"]
    assert not any("data" in effect for effect in explained["effects"])
    assert sorted(outcome["outcome"] for outcome in explained["outcomes"].values()) == ["Kept", "Probed"]


def test_all_profiles_stand_side_by_side(command, recorded):
    explained = command("explain", recorded, "--json", "--profile", "all").json()
    assert [one["profile"] for one in explained] == list(builtin_profiles())


def test_a_revision_narrows_the_profile(command, recorded):
    newest = command("explain", recorded, "--json", "--profile", "passthrough").json()["result"]
    oldest = command("explain", recorded, "--json", "--profile", "passthrough", "--revision", "2024-11-05").json()[
        "result"
    ]
    assert "structuredContent" in newest
    assert "structuredContent" not in oldest
    assert {block["type"] for block in oldest["content"]} == {"text"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON: Expecting property name"),
        ("[]", 'does not hold a CallToolResult (an object with a list "content")'),
        ('{"jsonrpc": "2.0", "error": {}}', "does not hold a CallToolResult"),
        ("", "is empty"),
        ("{}", 'does not hold a CallToolResult (an object with a list "content")'),
        ('{"profile": "codex"}', "does not hold a CallToolResult"),
        ("[{}]", "does not hold a CallToolResult"),
        (None, "cannot be read: no such file or directory"),
    ],
)
def test_what_is_no_result_is_one_line(command, tmp_path, text, message):
    path = tmp_path / "bad.json"
    if text is not None:
        path.write_text(text)
    ended = command("explain", path)
    assert ended.code == 2
    assert ended.err.startswith(f"error: {path}: {message}")
    assert ended.err.count("\n") == 1


def test_what_a_page_is_sent_is_said_where_the_tool_has_one(command, recorded):
    assert "app:" not in command("explain", recorded, "--profile", "cursor").out
    ended = command("explain", recorded, "--profile", "cursor", "--app")
    assert "app: structured content is sent as it came, for the page; this host's model reads it in place" in ended.out
    told = command("explain", recorded, "--profile", "cursor", "--app", "--json").json()
    assert told["result"]["structuredContent"] == RESULT["structuredContent"]
    every = command("explain", recorded, "--profile", "all", "--app", "--json").json()
    assert all(one["result"]["structuredContent"] == RESULT["structuredContent"] for one in every)


def test_an_embedded_page_is_one_line_without_its_text(command, tmp_path):
    page = {"uri": "ui://cards/1", "mimeType": "text/html", "text": "<h1>hello</h1>"}
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"content": [{"type": "resource", "resource": page}]}))
    ended = command("explain", path, "--app", "--profile", "goose")
    assert ended.out.count("  resource: text/html, 14 characters, ui://cards/1\n") == 2
    assert "hello" not in ended.out


def readers(command, path, profile):
    """What is said of the model's part and of the page's, each line by line."""
    ended = command("explain", path, "--app", "--profile", profile)
    assert ended.code == 0, ended.err
    model, page = ended.out.split("\nthe model reads:\n")[1].split("\nthe page reads:\n")
    return model.splitlines(), page.strip().splitlines()


@pytest.fixture
def board(tmp_path):
    """Record a result with data for a page of this many rows of 100 characters, and what its model is to read."""

    def write(rows):
        path = tmp_path / "board.json"
        data = {"content": [{"type": "text", "text": "A board."}], "structuredContent": {"rows": ["r" * 97] * rows}}
        path.write_text(json.dumps({**data, "_meta": {"k": "v"}}))
        return path

    return write


def test_the_model_and_the_page_each_have_a_section_with_sizes(command, board):
    model, page = readers(command, board(4), "goose")
    assert model == [
        "  the content: 419 characters (about 98 tokens)",
        "  structured content, 410 characters (about 95 tokens): this host's model does not read it",
        "  block 0 of the content has the page's data as text: 410 characters (about 95 tokens)",
    ]
    assert page[1:-1] == [
        "  structured content, as the server sent it: 410 characters (about 95 tokens)",
        "  _meta, as the server sent it: 9 characters (about 4 tokens), which no model reads",
    ]


@pytest.mark.parametrize(
    ("profile", "warning"),
    [
        (
            "claude-desktop",
            "warning: the model reads 780,010 characters (about 176,526 tokens) of the page's data: put",
        ),
        ("agent-loop", "warning: the model may read 780,010 characters (about 176,526 tokens) of the page's data: put"),
        ("default", "warning: the model may read "),
        ("goose", None),
        ("vscode-copilot", None),
    ],
)
def test_a_page_with_much_data_that_models_read_is_warned_of(command, board, profile, warning):
    model, page = readers(command, board(7_800), profile)
    said = [line for line in model if "warning" in line]
    assert len(said) == (warning is not None)
    assert all(warning in line for line in said)
    lost = [line for line in page if "this host loses it on the way to the page; it gets no other" in line]
    assert len(lost) == (profile == "claude-desktop")
    assert not any("warning" in line for line in readers(command, board(4), profile)[0])


def test_data_that_a_host_writes_to_a_file_is_nowhere_said_to_be_read(command, board):
    said = command("explain", board(7_800), "--app", "--profile", "vscode-copilot").out
    assert "structured content is sent as it came, for the page; too long for this host, which writes it to" in said
    assert "reads it in place of the text" not in said
    assert "goes to this host's model whole" not in said
    assert int(re.search(r"costs about ([\d,]+) tokens?", said)[1].replace(",", "")) < 1_000


def test_data_that_a_host_has_no_text_for_has_a_remedy(command, board):
    said = command("explain", board(7_800), "--app", "--profile", "claude-desktop").out
    assert "this host's pages get none; have the tool return less of it, and let the page ask for the rest" in said


def test_a_page_whose_host_loses_its_data_is_told_where_to_look(command, board):
    page = readers(command, board(4), "claude-desktop")[1]
    [line] = [line for line in page if "loses it on the way" in line]
    assert line.endswith("a page that looks for it in block 0, the text, finds it there, others stay empty")


def test_data_that_a_host_writes_to_a_file_is_not_what_its_model_reads(command, board):
    written = "writes it to a file: its model reads where that is"
    assert any(written in line for line in readers(command, board(7_800), "vscode-copilot")[0])
    assert not any(written in line for line in readers(command, board(4), "vscode-copilot")[0])


def test_without_a_page_there_is_one_reader(command, recorded):
    assert "the page reads" not in command("explain", recorded).out
