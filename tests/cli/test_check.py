"""`mcp-gateway check`, on real servers: what is called, what is shown, what is advised, and how it ends."""

import base64
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

SERVERS = Path(__file__).parents[1] / "servers"
READS = {"readOnlyHint": True}
HOSTS = {"claude-code", "claude-desktop", "codex", "gemini-cli", "cline", "unknown"}


def png(width=40, height=30):
    out = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


TEXT = {"type": "text", "text": "A gradient, from black to white."}
IMAGE = {"type": "image", "data": png(), "mimeType": "image/png"}


def tool(name, **more):
    return {
        "name": name,
        "description": f"Does {name}.",
        "inputSchema": {"type": "object"},
        "annotations": READS,
    } | more


@pytest.fixture
def server(tmp_path):
    """A server of these tools and results, as the words of its command; and the calls that it got."""

    class Server:
        path = tmp_path / "script.json"

        def __call__(self, *tools, resources=None, **results):
            more = {} if resources is None else {"resources": resources}
            self.path.write_text(json.dumps({"tools": tools, "results": results, **more}))
            return ("--", sys.executable, str(SERVERS / "scripted_stdio.py"), str(self.path))

        @property
        def calls(self):
            path = Path(f"{self.path}.calls")
            return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return Server()


def test_a_good_server_is_exit_code_0_without_anything_to_change(command, server):
    words = server(tool("draw"), draw={"content": [TEXT]})
    ended = command("check", "--strict", *words)
    assert ended.code == 0
    assert "directly shown or kept everywhere, seen by the models of 6 of 6 hosts" in ended.out
    assert "through  shown or kept everywhere, seen by the models of 6 of 6 hosts" in ended.out
    assert ended.out.endswith("\n1 call; through the gateway 6 of 6 shown or kept, 6 seen; no things to change\n")
    assert server.calls == [["draw", {}]]


def test_what_is_lost_directly_and_arrives_through_the_gateway_is_shown_with_what_to_change(command, server):
    words = server(tool("draw"), draw={"content": [TEXT, IMAGE], "structuredContent": {"points": 3}})
    ended = command("check", *words)
    assert ended.code == 0
    assert "directly codex: not seen: image/png from content[1]" in ended.out
    assert "through  shown or kept everywhere, seen by the models of 5 of 6 hosts" in ended.out
    assert "6 of 6 shown or kept, 5 seen;" in ended.out
    assert "change   structuredContent: beside images it hides them" in ended.out
    assert command("check", "--strict", *words).code == 1


def test_json_has_every_host_both_ways(command, server):
    words = server(tool("draw"), draw={"content": [TEXT, IMAGE | {"mimeType": "image/jpeg"}]})
    told = command("check", "--json", *words).json()
    assert (told["good"], told["failed"], told["skipped"]) == (True, {}, [])
    assert {one["host"] for one in told["results"]} == HOSTS
    assert all(one["through"]["good"] for one in told["results"])
    assert [one["rule"] for one in told["advice"]["draw"]] == ["image-wrong-type"]


def test_tools_that_may_do_harm_are_never_called_unasked(command, server):
    words = server(
        tool("looks"),
        tool("silent", annotations={}),
        tool("destroys", annotations={"destructiveHint": True}),
        looks={"content": [TEXT]},
        silent={"content": [TEXT]},
        destroys={"content": [TEXT]},
    )
    ended = command("check", *words)
    assert server.calls == [["looks", {}]]
    assert "  destroys: it declares destructiveHint: list it in --arguments, or use --all" in ended.out
    assert "  silent: it does not declare readOnlyHint" in ended.out
    assert f"to call them as well: mcp-gateway check --all {shlex.join(words)}\n" in ended.out
    command("check", "--all", *words)
    assert [name for name, _ in server.calls] == ["looks", "looks", "silent", "destroys"]


def test_arguments_come_from_a_file_or_from_the_schema(command, server, tmp_path):
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "n": {"minimum": 3}},
        "required": ["n", "path"],
    }
    words = server(tool("echo", inputSchema=schema), tool("writes", annotations={}), writes={"content": [TEXT]})
    assert command("check", *words).code == 0
    given = tmp_path / "arguments.toml"
    given.write_text('[[echo]]\npath = "a.png"\nn = 4\n[[echo]]\nday = 2026-01-31\n[writes]\n')
    ended = command("check", "--arguments", given, *words)
    assert ended.code == 0
    assert "echo (2): " in ended.out
    assert server.calls == [
        ["echo", {"n": 3, "path": "."}],
        ["echo", {"path": "a.png", "n": 4}],
        ["echo", {"day": "2026-01-31"}],
        ["writes", {}],
    ]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("{", "a.json", "a.json: is not JSON"),
        ("=", "a.toml", "a.toml: is not TOML"),
        ("[]", "a.json", "a.json: is not an object of tools"),
        ('{"eco": {}}', "a.json", "--arguments: the server has no tool 'eco' (did you mean 'echo'?)"),
    ],
)
def test_arguments_that_cannot_be_used_are_one_line_and_exit_code_2(command, server, tmp_path, text, name, said):
    path = tmp_path / name
    path.write_text(text)
    ended = command("check", "--arguments", path, *server(tool("echo")))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_tool_that_fails_is_exit_code_1_whether_it_says_so_or_refuses(command, server):
    words = server(
        tool("broken"),
        tool("refuses"),
        broken={"content": [{"type": "text", "text": "No such file."}], "isError": True},
        refuses={"refusal": {"code": -32000, "message": "not today"}},
    )
    ended = command("check", "--json", *words)
    assert ended.code == 1
    assert "No such file." in ended.json()["failed"]["broken"]
    assert "made up" in ended.json()["failed"]["broken"]
    assert "not today" in ended.json()["failed"]["refuses"]


def test_what_refuses_made_up_arguments_is_not_counted_as_seen_and_real_ones_are_asked_for(command, server, tmp_path):
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    refusal = {"content": [{"type": "text", "text": "No such file."}], "isError": True}
    words = server(tool("opens", inputSchema=schema), opens=refusal)
    ended = command("check", *words)
    assert ended.code == 1
    assert "seen" not in ended.out
    assert ended.out.splitlines()[-1].startswith("1 call, 1 failed (exit code 1); ")
    assert "  failed   it reports an error: No such file. (perhaps since its arguments were made up: " in ended.out
    hint = "made-up arguments failed; give real ones with --arguments FILE, which may hold, with your values:"
    example = ended.out.split(hint)[1].splitlines()[1]
    told = command("check", "--json", *words).json()
    assert (told["good"], told["cells"], told["made_up"]) == (False, 0, {"opens": {"path": "."}})
    given = tmp_path / "arguments.json"
    given.write_text(example.replace('"."', '"real.png"'))
    again = command("check", "--arguments", given, *words)
    assert again.code == 1  # what the server says of real arguments is a result like any other
    assert "made up" not in again.out
    assert re.search(r"1 call, 1 failed \(exit code 1\); through the gateway (\d+) of \1 shown", again.out)


def test_only_some_tools_and_hosts_may_be_looked_at(command, server):
    words = server(tool("draw"), tool("drop"), draw={"content": [TEXT]}, drop={"content": [TEXT]})
    told = command("check", "--json", "--tool", "dra*", "--host", "codex", "--host", "cline", *words).json()
    assert [(one["case"], one["host"]) for one in told["results"]] == [("draw", "codex"), ("draw", "cline")]
    assert command("check", "--host", "codx", *words).code == 2


def test_tools_that_are_not_asked_for_are_not_mentioned(command, server):
    undescribed = tool("drop", annotations={}, description="")
    ended = command("check", "--tool", "draw", *server(tool("draw"), undescribed, draw={"content": [TEXT]}))
    assert "drop" in command("check", *server(tool("draw"), undescribed, draw={"content": [TEXT]})).out
    assert "drop" not in ended.out


def test_a_slow_start_is_announced(command, server, monkeypatch):
    monkeypatch.setattr("gateway.cli.diagnosis.server_check.ANNOUNCED_AFTER", 0)
    ended = command("check", *server(tool("draw"), draw={"content": [TEXT]}))
    assert ended.err.splitlines()[0].startswith("connecting to ")


def test_a_start_that_takes_long_says_now_and_then_that_it_goes_on(command, monkeypatch):
    monkeypatch.setattr("gateway.cli.diagnosis.server_check.ANNOUNCED_AFTER", 0)
    monkeypatch.setattr("gateway.cli.diagnosis.server_check.AGAIN_EVERY", 0.2)
    monkeypatch.setattr("gateway.upstream.connection.first_start.HTTP_GRACE", 1.0)
    monkeypatch.setattr("gateway.upstream.connection.first_start.PERIOD", 0.1)
    script = "print('MCP server listening on http://localhost:3001/mcp', flush=True); import time; time.sleep(600)"
    ended = command("check", "--", sys.executable, "-c", script)
    said = ended.err.splitlines()
    assert re.fullmatch(r"still connecting to \S+, \d+ s", said[1])
    assert said[-1].endswith("(it serves HTTP: give it its option for stdio, often --stdio)")
    assert ended.code == 3


def test_hosts_that_are_not_looked_at_by_themselves_may_be_named(command, server):
    picture = {"content": [TEXT, {"type": "image", "data": IMAGE["data"], "mimeType": "image/png"}]}
    hosts = ["langchain", "openai-agents-chat", "ai-sdk-chat", "qwen-code-text", "smolagents"]
    options = [option for name in hosts for option in ("--host", name)]
    told = command("check", "--json", *options, *server(tool("draw"), draw=picture)).json()
    assert [(one["host"], one["direct"]["good"], one["through"]["good"]) for one in told["results"]] == [
        ("langchain", True, True),
        ("openai-agents-chat", False, True),
        ("ai-sdk-chat", False, True),
        ("qwen-code-text", False, True),
        ("smolagents", False, True),
    ]


def test_where_nothing_may_be_called_nothing_is_said_to_be_good(command, server):
    words = server(tool("writes", annotations={}))
    ended = command("check", *words)
    assert ended.code == 1
    called = "nothing is known; no tool was called: list tools in --arguments FILE, or use"
    assert ended.out.endswith(f"\n{called} `mcp-gateway check --all {shlex.join(words)}`\n")


def test_an_option_behind_the_command_is_named_where_it_belongs(command, server, tmp_path):
    words = (*server(tool("writes", annotations={})), "--all", "--token", "s3cr3t-canary")
    ended = command("check", "--host", "claude-code", *words)
    whole = f"mcp-gateway check --host claude-code --all {shlex.join(words[:-3])} --token "
    assert f"or use `{whole}" in ended.out
    assert "s3cr3t-canary" not in ended.out


def test_a_server_of_the_configuration_takes_the_option_anywhere(command, server, tmp_path):
    _, *program = server(tool("writes", annotations={}))
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(f"[upstreams.x]\ncommand = {json.dumps(program[0])}\nargs = {json.dumps(program[1:])}\n")
    ended = command("check", "x", "--config", config)
    assert ended.out.endswith("\nnothing is known; no tool was called: list tools in --arguments FILE, or use --all\n")
    assert "to call them as well" not in ended.out


def test_the_page_has_the_pictures_and_what_to_change_and_nothing_that_runs(command, server, tmp_path):
    hostile = '"><script>alert(1)</script>'
    data = png(200, 160)
    words = server(tool(hostile), **{hostile: {"content": [IMAGE | {"data": data}, {"type": "text", "text": hostile}]}})
    page = tmp_path / "out" / "report.html"
    ended = command("check", "--html", page, *words)
    assert ended.code == 0
    text = page.read_text("utf-8")
    assert text.count(data) == 1
    assert "<script" not in text
    assert '<ul class="advice"><li>the tool: its name has characters' in text
    assert f"report: {page}" in ended.err


def test_whatever_a_server_returns_is_judged(command, server):
    results = {
        "a": {"content": None},
        "b": {
            "content": [
                5,
                "x",
                {"type": "text"},
                {"type": "resource", "resource": {"uri": "a:b", "blob": "AA", "mimeType": 5}},
            ]
        },
        "c": {"structuredContent": [1]},
        "d": {"content": [{"type": "resource_link", "uri": "a:b", "name": "b", "description": 7}], "isError": "yes"},
        "e": {"content": [{"type": "text", "text": "\x1b]0;owned\x07"}]},
    }
    tools = [tool(name, _meta={"anthropic/maxResultSizeChars": "all"}) for name in results]
    ended = command("check", *server(*tools, {"name": "bad", "inputSchema": []}, **results))
    assert ended.code in (0, 1)
    assert "5 calls" in ended.out
    assert "\x1b" not in ended.out + ended.err
    assert "the gateway withholds it" in ended.out


def test_a_server_of_the_configuration_may_be_checked_even_where_it_is_disabled(command, server, tmp_path):
    words = server(tool("draw"), draw={"content": [TEXT]})
    config = tmp_path / "some.toml"
    config.write_text(
        f"[upstreams.mine]\nenabled = false\ncommand = {json.dumps(words[1])}\nargs = {json.dumps(words[2:])}\n"
        '[upstreams.other]\ncommand = "/no/such/program"\n'
    )
    ended = command("check", "--config", config, "--upstream", "mine", "--json")
    assert (ended.code, ended.json()["server"]) == (0, "mine")
    refused = command("check", "--config", config, "--upstream", "mein")
    assert (refused.code, refused.err) == (
        2,
        "error: --upstream: there is no upstream 'mein' (did you mean 'mine'? there are: mine, other)\n",
    )


def test_a_server_of_the_configuration_is_checked_by_its_name_alone(command, server, tmp_path, monkeypatch):
    words = server(tool("draw"), draw={"content": [TEXT]})
    table = f"[upstreams.mine]\ncommand = {json.dumps(words[1])}\nargs = {json.dumps(words[2:])}\n"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcp-gateway.toml").write_text(table)
    for config in ([], ["--config", "mcp-gateway.toml"]):
        ended = command("check", "mine", *config, "--json")
        assert (ended.code, ended.json()["server"]) == (0, "mine")
    refused = command("check", "mien")
    assert refused.err == "error: there is neither an upstream nor a program 'mien' (did you mean 'mine'?)\n"
    as_program = command("check", "--", "mine")
    assert (as_program.code, "the command 'mine' was not found" in as_program.err) == (3, True)


def test_a_server_at_an_address_may_be_checked(command):
    process = subprocess.Popen(
        [sys.executable, SERVERS / "raw_http.py", "tools-only"], stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(process.stdout.readline())
        ended = command("check", f"http://127.0.0.1:{port}/mcp", "--tool", "pid", "--all", "--json")
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
    assert ended.code == 0
    assert "structured-alone" in {one["rule"] for one in ended.json()["advice"]["pid"]}


def test_a_server_that_is_not_there_is_exit_code_3(command):
    ended = command("check", "--", "/no/such/program")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == (
        "error: upstream 'program': the command '/no/such/program' was not found "
        "(install it, check PATH, or give its absolute path)\n"
    )


@pytest.mark.parametrize(
    "arguments", [(), ("--config", "x.toml"), ("--upstream", "x", "--", "y"), ("http://", "--tool", "x"), ("ftp://x",)]
)
def test_a_command_line_that_names_no_server_is_refused(command, arguments):
    assert command("check", *arguments).code in (2, 3)


def test_a_call_that_takes_too_long_is_ended(command):
    words = ("--", sys.executable, str(SERVERS / "raw_stdio.py"))
    ended = command("check", "--tool", "hang", "--all", "--timeout", "0.5", "--json", *words)
    assert ended.code == 1
    assert "took longer than 0.5 s" in ended.json()["failed"]["hang"]


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("cursor", ["cursor has a profile, but no simulator", "--profile cursor` shows what it is sent", "codex, "]),
        ("VSCode-Copilot", ["vscode-copilot has a profile, but no simulator"]),
        ("codx", ["no simulated host is called 'codx'; did you mean 'codex'?"]),
        ("nobody-knows", ["no simulated host is called 'nobody-knows'; simulated are claude-code, claude-desktop, "]),
    ],
)
def test_a_host_that_is_not_simulated_is_said_with_where_it_stands(command, host, words):
    ended = command("check", "--host", host, "--", "true")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    for each in words:
        assert each in ended.err
    assert len(ended.err) < 350


PAGE = "text/html;profile=mcp-app"
SHOWING = ["chatgpt", "claude-ai", "claude-desktop", "cursor", "goose", "inspector", "vscode-copilot"]


def test_pages_are_read_as_by_the_hosts_that_show_them(command, server):
    asks = {"ui": {"csp": {"connectDomains": ["https://a.example"], "resourceDomains": ["https://b.example"]}}}
    words = server(
        tool("show", _meta={"ui": {"resourceUri": "ui://page"}, "ui/resourceUri": "ui://page"}),
        tool("next", _meta={"ui": {"resourceUri": "ui://page", "visibility": ["app"]}}),
        show={"content": [TEXT]},
        resources={"ui://page": {"mimeType": PAGE, "text": "<p>x</p>", "_meta": asks}},
    )
    ended = command("check", "--strict", *words)
    assert ended.code == 0, ended.out
    assert "\nui://page: the page of show, next\n" in ended.out
    about = f"{PAGE}, 8 bytes, connects to https://a.example, loads from https://b.example"
    assert f"  in {', '.join(SHOWING)}: {about}\n" in ended.out
    assert "lost on the way" not in ended.out, "no structured content was returned"
    assert "6 of 6 shown or kept, 6 seen; 1 page; no things to change" in ended.out
    [page] = command("check", "--json", *words).json()["pages"]
    assert (page["uri"], page["tools"], page["faults"]) == ("ui://page", ["show", "next"], [])
    assert sorted(page["read"]) == SHOWING
    assert page["read"]["cursor"] == {
        "mime_type": PAGE,
        "bytes": 8,
        "domains": {"connect": ["https://a.example"], "resource": ["https://b.example"]},
        "permissions": [],
    }
    assert command("check", "--json", "--tool", "other*", *server(tool("other"), other={})).json()["pages"] == []


def test_where_structured_content_goes_is_said_of_the_tools_that_returned_it(command, server):
    with_page = {"_meta": {"ui": {"resourceUri": "ui://page"}}}
    for_pages = {"_meta": {"ui": {"resourceUri": "ui://page", "visibility": ["app"]}}}
    data = {"content": [{"type": "text", "text": '{"n": 1}'}], "structuredContent": {"n": 1}}
    words = server(
        *(tool("show", **with_page), tool("text", **with_page), tool("next", **for_pages), tool("plain")),
        show=data,
        text={"content": [TEXT]},
        next=data,
        plain=data,
        resources={"ui://page": {"mimeType": PAGE, "text": "<p>x</p>"}},
    )
    out = command("check", *words).out
    said = "  in claude-desktop: the structured content of show is lost on the way to the page; whether the page reads"
    assert out.count("lost on the way") == 1
    assert said in out
    replaced = "chatgpt, cursor, vscode-copilot: with a page, the model reads structured content in place of the text"
    cases = {part.split(":")[0]: part for part in out.split("\n\n")}
    assert f"  pages    {replaced}\n" in cases["show"] + "\n"
    assert out.count(replaced) == 1
    checked = command("check", "--json", *words).json()
    [page] = checked["pages"]
    assert page["structured_content"] == {"returned_by": ["show"], "lost_in": ["claude-desktop"]}
    shown_in = ["chatgpt", "cursor", "vscode-copilot"]
    assert checked["structured_content"] == {
        "tools": ["show"],
        "replaces_text_in": shown_in,
        "hides_pictures": {},
        "hides_pictures_in": ["cursor"],
        "too_large_for_models": {},
        "read_in": ["chatgpt", "claude-ai", "claude-desktop", "cursor", "inspector", "vscode-copilot"],
    }


def test_pictures_that_the_data_of_a_page_hides_are_something_to_change(command, server, tmp_path):
    data = {"content": [TEXT, IMAGE], "structuredContent": {"words": TEXT["text"]}}
    words = server(
        tool("show", _meta={"ui": {"resourceUri": "ui://page"}}),
        show=data,
        resources={"ui://page": {"mimeType": PAGE, "text": "<p>x</p>"}},
    )
    ended = command("check", *words)
    said = "  change   in cursor: with a page, structured content replaces all other content, so the picture is lost to"
    assert said in ended.out
    assert "1 page; 1 thing to change" in ended.out
    assert command("check", "--json", *words).json()["structured_content"]["hides_pictures"] == {"show": 1}
    config, (program, *arguments) = tmp_path / "gateway.toml", words[1:]
    config.write_text(f"[upstreams.one]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n")
    for profiles in ("all", "cursor"):
        ended = command("call", "one__show", "--config", config, "--app", "--profile", profiles)
        told = next(line for line in ended.err.splitlines() if "lost to it" in line)
        assert "cursor" in told
        assert "vscode-copilot" not in told
        assert told.endswith("in place of all other content, so the picture is lost to it")
    assert "lost to it" not in command("call", "one__show", "--config", config, "--profile", "cursor").err


def test_data_of_a_page_that_fills_the_context_of_models_is_something_to_change(command, server):
    data = {"content": [TEXT], "structuredContent": {"rows": ["x" * 97] * 7_800}}
    words = server(
        tool("show", _meta={"ui": {"resourceUri": "ui://page"}}),
        tool("plain"),
        show=data,
        plain=data,
        resources={"ui://page": {"mimeType": PAGE, "text": "<p>x</p>"}},
    )
    out = command("check", *words).out
    hosts = "chatgpt, claude-ai, claude-desktop, cursor, inspector, vscode-copilot"
    size = "780,010 characters (about 176,526 tokens)"
    said = f"  change   in {hosts}: the page's data goes to the model whole, {size}: put what only the page needs into"
    assert out.count(said) == 1
    assert "things to change" in out or "1 thing to change" in out
    checked = command("check", "--json", *words).json()["structured_content"]
    assert checked["too_large_for_models"] == {"show": 780_010}


def test_a_server_is_good_whose_pages_are_read_though_none_of_its_tools_may_be_called(command, server):
    words = server(
        tool("show", annotations={}, _meta={"ui": {"resourceUri": "ui://page"}}),
        resources={"ui://page": {"mimeType": PAGE, "text": "<p>x</p>"}},
    )
    ended = command("check", *words)
    assert ended.code == 0, ended.out
    called = (
        f"no tool was called: list tools in --arguments FILE, or use `mcp-gateway check --all {shlex.join(words)}`\n"
    )
    assert ended.out.endswith(f"\n1 page; 1 thing to change; {called}")
    assert "lost on the way" not in ended.out


def test_a_page_that_hosts_do_not_show_is_a_thing_to_change(command, server):
    words = server(
        tool("show", _meta={"ui": {"resourceUri": "ui://page"}}),
        show={"content": [TEXT]},
        resources={"ui://page": {"mimeType": "text/html", "text": "<p>x</p>"}},
    )
    ended = command("check", *words)
    assert ended.code == 0
    assert f"  change   its type is text/html, and hosts show only {PAGE}\n" in ended.out
    assert "1 page; 1 thing to change" in ended.out
    assert command("check", "--strict", *words).code == 1


def test_a_page_that_cannot_be_read_is_exit_code_1(command, server):
    words = server(tool("show", _meta={"ui": {"resourceUri": "ui://page"}}), show={"content": [TEXT]}, resources={})
    ended = command("check", *words)
    assert ended.code == 1
    answered = "cannot be read: the server answers that there is no such resource"
    assert f"\nui://page: the page of show\n  in {', '.join(SHOWING)}: {answered}\n" in ended.out
    assert "  change   its tool names a page that cannot be read\n" in ended.out
    assert "1 page; 1 thing to change" in ended.out


def test_the_uri_of_a_page_has_a_scheme_of_its_own(command, server):
    words = server(
        tool("show", _meta={"ui": {"resourceUri": "page://here"}}),
        show={"content": [TEXT]},
        resources={"page://here": {"mimeType": PAGE, "text": "<p>x</p>"}},
    )
    assert "  change   a page's URI begins with ui://\n" in command("check", *words).out


def test_pages_that_only_hosts_with_the_extension_are_offered_are_missing_in_the_others(command):
    words = ("--", sys.executable, str(SERVERS / "raw_stdio.py"), "apps", "apps-if-declared")
    [page] = command("check", "--timeout", "30", "--json", *words).json()["pages"]
    assert page["read"]["cursor"]["domains"] == {"connect": ["https://example.org"]}
    assert page["read"]["vscode-copilot"] is None
    said = "  in chatgpt, vscode-copilot: not offered: the server offers it only to hosts that declare the extension\n"
    assert said in command("check", "--timeout", "30", *words).out


def test_what_only_pages_read_is_called_where_it_is_asked_for_and_judged_for_no_model(command, server, tmp_path):
    long = {"content": [{"type": "text", "text": "word " * 40_000}]}
    words = server(tool("next", _meta={"ui": {"visibility": ["app"]}}), next=long)
    assert "next: only pages call it (MCP Apps), no model" in command("check", *words).out
    given = tmp_path / "arguments.json"
    given.write_text('{"next": {}}')
    ended = command("check", "--arguments", given, *words)
    assert ended.code == 0
    assert "next: text of 200,000 characters\n  only pages read this: they get it as it came\n" in ended.out
    assert "\n1 call; no things to change\n" in ended.out
    words = server(tool("next", _meta={"ui": {"visibility": ["app"]}}), next={"content": [TEXT], "isError": True})
    assert command("check", "--arguments", given, *words).code == 1


def test_data_that_does_not_arrive_is_said_once_for_each_host_and_without_the_data(command, server):
    long = {"content": [], "structuredContent": {"rows": ["abcdefghij " * 1_000] * 9}}
    ended = command("check", *server(tool("big"), big=long))
    assert "  directly gemini-cli, unknown: nothing arrives\n" in ended.out
    assert "abcdefghij" not in ended.out


def test_a_page_in_a_result_is_kept_where_a_line_names_it(command, server):
    page = {"uri": "ui://cards/1", "mimeType": "text/html", "text": "<h1>The tides</h1>"}
    ended = command("check", *server(tool("card"), card={"content": [TEXT, {"type": "resource", "resource": page}]}))
    assert ended.code == 0, ended.out
    assert "6 of 6 shown or kept" in ended.out
