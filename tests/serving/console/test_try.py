"""Try in the console: a real gateway over HTTP, with a server that has every kind of schema and asks questions."""

import json
import re
import sys
import time
from collections.abc import Generator
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.serving.console.uri_template import expanded, variables
from tests.telemetry.conftest import SERVERS, Serving

PATIENCE = 30.0


class TrialGateway(Serving):
    """A gateway whose server logs what arrives to `log` in a folder."""

    folder: Path


class Browser:
    """A browser that was let into the console, and its pages' token for forms."""

    def __init__(self, serving: Serving) -> None:
        entrance = serving.line_with("console at ").partition("console at ")[2].strip()
        self.http = httpx2.Client(trust_env=False, timeout=PATIENCE, follow_redirects=True)
        home = self.http.get(entrance)
        found = re.search(r'X-Console-Token": "([0-9a-f]+)"', home.text)
        assert found, home.text
        self.token = found[1]
        self.base = f"{serving.url}/console"

    def page(self, path: str) -> str:
        """The page at a path."""
        answer = self.http.get(f"{self.base}{path}")
        assert answer.status_code == 200, answer.text
        return answer.text

    def data(self, path: str) -> Any:
        """The JSON of a path."""
        return self.http.get(f"{self.base}/api{path}").json()

    def send(self, path: str, body: Any, *, token: bool = True) -> httpx2.Response:
        """Send JSON, or a form (pairs), as a page does."""
        headers = {"X-Console-Token": self.token} if token else {}
        if isinstance(body, dict):
            return self.http.post(f"{self.base}/api{path}", json=body, headers=headers)
        form = httpx2.QueryParams(body)
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "HX-Request": "true"}
        return self.http.post(f"{self.base}{path}", content=str(form), headers=headers)

    def run(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Begin a try, and return it as it then is."""
        answer = self.send(path, body).json()
        assert answer.get("run"), answer
        return answer["run"]

    def until(self, run: dict[str, Any], key: str) -> dict[str, Any]:
        """Ask for a try until it has something under a key."""
        limit = time.monotonic() + PATIENCE
        while not run[key] and time.monotonic() < limit:
            time.sleep(0.05)
            run = self.data(f"/try/runs/{run['id']}")["run"]
        assert run[key], run
        return run


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator["TrialGateway"]:
    folder = tmp_path_factory.mktemp("try")
    config = folder / "gateway.toml"
    command = f"command = {json.dumps(sys.executable)}\n"
    config.write_text(
        f"[upstreams.trial]\n{command}"
        f"args = [{json.dumps(str(SERVERS / 'trial_stdio.py'))}, {json.dumps(str(folder / 'log'))}]\n"
        "[content]\nmax_upload_bytes = 100000\n"
        '[[policy.rules]]\nname = "no-failing"\neffect = "deny"\ntools = ["trial__fail"]\n'
        '[[policy.rules]]\nname = "ask"\neffect = "approve"\ntools = ["trial__look"]\n'
    )
    serving = TrialGateway(config, "--console")
    serving.folder = folder
    serving.line_with("upstream trial: ready")
    yield serving
    serving.process.kill()
    serving.process.wait()


@pytest.fixture(scope="module")
def browser(served: Serving) -> Generator[Browser]:
    opened = Browser(served)
    yield opened
    opened.http.close()


def text_of(run: dict[str, Any]) -> str:
    return run["messages"][0]["parts"][0]["text"]


def test_the_tools_are_listed_as_a_profile_is_offered_them(browser: Browser) -> None:
    listed = browser.data("/try?text=SCHEMA")
    assert [tool["name"] for group in listed["groups"] for tool in group["tools"]] == ["trial__shapes"]
    assert listed["groups"][0]["tools"][0]["hints"][0] == {"words": "reads only", "tone": "good"}
    assert {profile["name"] for profile in listed["profiles"]} >= {"claude-code", "codex"}
    assert browser.data("/try?profile=claude-code")["in_force"] == "claude-code"
    assert "there are" in browser.data("/try?profile=nobody's")["remedy"]
    for query in ("", "?profile=default", "?profile=codex"):
        assert re.findall(r">(Unknown client[^<]*)<", browser.page(f"/try{query}")) == [
            "Unknown client, with pages (default)",
            "Unknown client",
        ]
    assert "trial__shapes" in browser.page("/try")
    others = browser.data("/try/others")
    assert "trial__greet" in [prompt["name"] for prompt in others["prompts"]]
    assert "note://one" in [resource["uri"] for resource in others["resources"]]
    assert "note://{name}{?part}" in [template["uri"] for template in others["templates"]]
    assert "trial__greet" in browser.page("/try/others?text=greet")


def test_a_form_is_drawn_sent_and_called(browser: Browser) -> None:
    page = browser.page("/try/tools/trial__shapes")
    for name in ("s:/title", "s:/day", "n:/count", "j:/loud", "o:/place", "s:/shape/kind", "s:/tags/~rrow1x"):
        assert f'"{name}"' in page or name == "s:/shape/kind", name
    pairs = [
        ("profile", ""),
        ("o:", "1"),
        ("s:/title", "one"),
        ("s:/text", "two\r\nlines"),
        ("j:/version", "2"),
        ("o:/place", "1"),
        ("n:/place/x", "1.5"),
        ("n:/place/y", "2"),
        ("s:/tags/~r1004", "later"),
        ("s:/tags/~r1001", "sooner"),
        ("s:/day", ""),
    ]
    fragment = browser.send("/try/tools/trial__shapes", pairs).text
    assert "<!doctype" not in fragment
    called = re.search(r'/console/calls/(\d+)"', fragment)
    assert called, fragment
    arguments = json.loads(browser.data(f"/calls/{called[1]}")["arguments"]["text"])
    assert arguments == {
        "title": "one",
        "text": "two\nlines",
        "version": 2,
        "place": {"x": 1.5, "y": 2},
        "tags": ["later", "sooner"],
    }


def test_what_a_try_shows_is_said_to_be_what_the_played_host_is_sent(browser: Browser) -> None:
    run = browser.run(
        "/try/tools/trial__shapes", {"profile": "goose", "arguments": {"title": "one", "text": "two", "version": 2}}
    )
    done = browser.until(run, "messages")
    assert done["sent_to"] == "Goose"
    assert "What Goose is sent:" in browser.page(f"/try/runs/{run['id']}")
    (row,) = (row for row in browser.data("/calls")["calls"] if row["number"] == done["call"])
    assert row["played"] == "goose"
    assert " as goose" in browser.page("/calls")


def test_what_does_not_fit_is_told_at_its_field_and_called_only_on_demand(browser: Browser) -> None:
    refused = browser.send("/try/tools/trial__shapes", {"arguments": {"version": 2, "count": 99}}).json()
    assert refused["run"] is None
    assert refused["can_force"]
    assert {mistake["at"] for mistake in refused["mistakes"]} == {"/title", "/count"}
    page = browser.send("/try/tools/trial__shapes", [("o:", "1"), ("n:/count", "many"), ("s:/title", "x")]).text
    assert 'data-at="/count"' in page
    assert "this is not a number" in page
    run = browser.run("/try/tools/trial__shapes", {"arguments": {"count": 99}, "anyway": True})
    assert json.loads(text_of(run)) == {"count": 99}


def test_the_form_and_json_become_each_other(browser: Browser) -> None:
    as_json = browser.send("/try/form/trial__shapes", [("as", "json"), ("o:", "1"), ("s:/tags/~r1", "a")])
    assert '"tags": [' in as_json.text.replace("&#34;", '"')
    as_form = browser.send("/try/form/trial__shapes", [("as", "form"), ("json", '{"tags": ["a", 7], "new": null}')])
    assert 's:/tags/~r0"' in as_form.text
    assert 'name="j:/tags/~r1"' in as_form.text
    assert 'name="m:"' in as_form.text
    for bad in ("[", "[1]", "[" * 100_000):
        kept = browser.send("/try/form/trial__shapes", [("as", "form"), ("json", bad)]).text
        assert 'role="alert"' in kept
        assert f"\n{bad}</textarea>" in kept
    partly = browser.send("/try/form/trial__shapes", [("as", "json"), ("n:/count", "many"), ("s:/title", "x")]).text
    assert "left out: /count: this is not a number" in partly
    assert "title" in partly


def test_progress_is_shown_and_cancelling_reaches_the_server(browser: Browser, served: TrialGateway) -> None:
    run = browser.until(browser.run("/try/tools/trial__slow", {}), "progress")
    assert run["state"] == "running"
    assert run["progress"]["of"] == 100
    assert run["progress"]["words"].startswith("step ")
    assert "<progress value" in browser.page(f"/try/runs/{run['id']}")
    ended = browser.send(f"/try/runs/{run['id']}/cancel", {}).json()["run"]
    assert ended["state"] == "cancelled"
    assert browser.data(f"/calls/{ended['call']}")["outcome"] == "cancelled"
    log = served.folder / "log"
    limit = time.monotonic() + PATIENCE
    while "notifications/cancelled" not in log.read_text("utf-8") and time.monotonic() < limit:
        time.sleep(0.05)
    assert "notifications/cancelled" in log.read_text("utf-8")


def test_questions_are_asked_in_the_page(browser: Browser) -> None:
    run = browser.until(browser.run("/try/tools/trial__ask", {}), "question")
    assert run["question"]["message"] == "Who are you?"
    assert 'name="s:/name"' in browser.page(f"/try/runs/{run['id']}")
    answer = f"/try/runs/{run['id']}/answer"
    assert browser.data(f"/try/runs/{run['id']}/asked?number=1")["is_open"]
    refused = browser.send(answer, {"number": 1, "action": "accept", "content": {"name": "A"}}).json()
    assert refused["mistakes"][0]["at"] == "/name"
    assert browser.send(answer, {"number": 1, "action": "perhaps"}).status_code == 400
    given = [("number", "1"), ("action", "accept"), ("o:", "1"), ("s:/name", "Ada"), ("j:/colour", '"#f00"')]
    browser.send(answer, given)
    run = browser.until(run, "messages")
    assert json.loads(text_of(run)) == {"action": "accept", "content": {"name": "Ada", "colour": "#f00"}}
    assert not browser.data(f"/try/runs/{run['id']}/asked?number=1")["is_open"]


@pytest.mark.parametrize(
    ("tool", "answer", "expected"),
    [
        ("ask", {"action": "decline"}, {"action": "decline"}),
        ("ask", {"action": "cancel"}, {"action": "cancel"}),
        ("visit", {"action": "accept"}, {"action": "accept"}),
        ("sample", {"action": "accept", "text": "42"}, {"content": {"type": "text", "text": "42"}}),
        ("sample", {"action": "decline"}, {"code": -1}),
    ],
)
def test_each_answer_reaches_the_server(
    browser: Browser, tool: str, answer: dict[str, Any], expected: dict[str, Any]
) -> None:
    run = browser.until(browser.run(f"/try/tools/trial__{tool}", {}), "question")
    if tool == "sample":
        page = browser.page(f"/try/runs/{run['id']}")
        assert "What is &lt;b&gt;six" in page
        assert "Be brief." in page
    browser.send(f"/try/runs/{run['id']}/answer", {"number": run["question"]["number"], **answer})
    given = json.loads(text_of(browser.until(run, "messages")))
    assert {key: given[key] for key in expected} == expected


def test_rules_count_for_the_console_too(browser: Browser) -> None:
    assert browser.http.get(f"{browser.base}/api/try/tools/trial__fail").status_code == 404
    assert browser.send("/try/tools/trial__fail", {}).status_code == 400
    run = browser.until(browser.run("/try/tools/trial__look", {}), "question")
    browser.send(f"/try/runs/{run['id']}/answer", {"number": 1, "action": "decline"})
    run = browser.data(f"/try/runs/{run['id']}")["run"]
    assert run["state"] == "failed" or run["is_error"], run


def test_files_become_handles_that_a_tool_is_given(browser: Browser) -> None:
    assert 'type="file"' in browser.page("/try/tools/trial__look")
    headers = {"X-Console-Token": browser.token, "Content-Type": "text/plain"}
    address = f"{browser.base}/api/try/files?name=..%2F%1b[31mnotes.txt"
    stored = browser.http.post(address, content=b"some text", headers=headers).json()
    assert stored["bytes"] == 9
    assert "\x1b" not in stored["name"]
    assert browser.http.post(address, content=b"x" * 100_001, headers=headers).status_code == 400
    assert browser.http.post(address, content=b"x").status_code == 403


def test_prompts_and_resources(browser: Browser) -> None:
    assert 'name="s:/who"' in browser.page("/try/prompts/trial__greet")
    run = browser.run("/try/prompts/trial__greet", {"arguments": {"who": "Ada"}})
    assert run["messages"][0]["role"] == "user"
    assert text_of(run) == "Greet Ada!"
    assert 'name="uri"' in browser.page("/try/resources?uri=note://one")
    assert text_of(browser.run("/try/resources", {"uri": "note://one"})) == "read note://one"
    template = "note://{name}{?part}"
    assert 'name="s:/part"' in browser.page("/try/resources?template=note://{name}{?part}")
    run = browser.run("/try/resources", {"template": template, "arguments": {"name": "a b", "part": "1/2"}})
    assert text_of(run) == "read note://a%20b?part=1%2F2"
    run = browser.run("/try/prompts/nobody", {})
    assert run["state"] == "failed"
    assert run["error"]
    assert browser.http.get(f"{browser.base}/api/try/prompts/nobody").status_code == 404
    assert browser.http.get(f"{browser.base}/api/try/resources").status_code == 404


def test_a_tool_without_arguments_is_said_to_take_none(browser: Browser) -> None:
    page = browser.page("/try/tools/trial__slow")
    assert "It takes no arguments." in page
    assert "<details><summary>Give some anyway</summary>" in page
    kept = browser.send("/try/form/trial__slow", [("as", "form"), ("json", '{"x": 1}')]).text
    assert "<details open><summary>Give some anyway</summary>" in kept
    assert "It takes no arguments." not in browser.page("/try/tools/trial__shapes")


def test_hostile_schemas_are_drawn_as_text(browser: Browser) -> None:
    page = browser.page("/try/tools/trial__hostile")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\x1b" not in page
    assert len(page) < 700_000
    names = re.findall(r'name="(s:[^"]*script[^"]*)"', page)
    assert len(names) == 1
    pairs = [("o:", "1"), (names[0].replace("&lt;", "<").replace("&gt;", ">"), "given")]
    fragment = browser.send("/try/tools/trial__hostile", pairs).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in fragment


@pytest.mark.parametrize("path", ["/try/tools/trial__shapes", "/try/files", "/try/runs/x/cancel", "/try/runs/x/answer"])
def test_forms_of_other_sites_are_refused(browser: Browser, path: str) -> None:
    for values in ({}, [("o:", "1")]):
        answer = browser.send(path, values, token=False)
        assert answer.status_code == 403 or "not one of the console's own pages" in unescape(answer.text)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[1]", "application/json"),
        (b"{", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"x=" + b"y" * 5_000_000, "application/x-www-form-urlencoded"),
        (b"&".join(b"s:/a%d=1" % at for at in range(20_000)), "application/x-www-form-urlencoded"),
        (b"s:/a=1&s:/a/b=2", "application/x-www-form-urlencoded"),
        (b"s:/a/~r1=1&s:/a/b=2&s:%22=3", "application/x-www-form-urlencoded"),
        (b"json=%5B1%5D", "application/x-www-form-urlencoded"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(browser: Browser, body: bytes, kind: str) -> None:
    headers = {"X-Console-Token": browser.token, "Content-Type": kind}
    answer = browser.http.post(f"{browser.base}/api/try/tools/trial__shapes", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert answer.json()["remedy"]


def test_only_so_many_run_at_a_time(browser: Browser) -> None:
    runs = [browser.run("/try/tools/trial__slow", {}) for _ in range(8)]
    refused = browser.send("/try/tools/trial__slow", {})
    for run in runs:
        browser.send(f"/try/runs/{run['id']}/cancel", {})
    assert refused.status_code == 400
    assert "cancel" in refused.json()["remedy"]
    assert browser.data(f"/try/runs/{'x' * 300}")["remedy"]


def test_the_oldest_tries_are_forgotten_and_their_calls_stay(browser: Browser) -> None:
    first = browser.run("/try/tools/trial__shapes", {"anyway": True})
    for _ in range(32):
        last = browser.run("/try/tools/trial__shapes", {"anyway": True})
    assert browser.data(f"/try/runs/{last['id']}")["run"]["state"] == "done"
    assert "calls" in browser.data(f"/try/runs/{first['id']}")["remedy"]
    assert browser.data(f"/calls/{first['call']}")["outcome"] == "ok"


def test_a_gateway_with_a_running_try_stops(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    args = json.dumps([str(SERVERS / "trial_stdio.py")])
    config.write_text(f"[upstreams.trial]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n")
    serving = Serving(config, "--console")
    try:
        serving.line_with("upstream trial: ready")
        browser = Browser(serving)
        browser.until(browser.run("/try/tools/trial__ask", {}), "question")
        browser.http.close()
        assert serving.end() == 0
    finally:
        serving.process.kill()
        serving.process.wait()


def test_templates_are_expanded_as_their_specification_shows() -> None:
    # The examples of RFC 6570, section 3.2.
    values = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": "1024", "y": "768", "empty": ""}
    for template, address in {
        "{var}": "value",
        "{hello}": "Hello%20World%21",
        "{+path}/here": "/foo/bar/here",
        "{#x,hello,y}": "#1024,Hello%20World!,768",
        "X{.x,y}": "X.1024.768",
        "{/var,x}/here": "/value/1024/here",
        "{;x,y,empty}": ";x=1024;y=768;empty",
        "{?x,y,empty}": "?x=1024&y=768&empty=",
        "?fixed=yes{&x}": "?fixed=yes&x=1024",
        "{?undef,y}": "?y=768",
        "{undef}": "",
        "{": "{",
    }.items():
        assert expanded(template, values) == address
    assert variables("a{/b*,c:3}{?b,d}{}") == ["b", "c", "d"]
    assert expanded("{a}", {"a": "\ud800"}) == "%3F"


def test_a_past_call_is_tried_again_with_its_arguments_and_only_when_asked_for(
    browser: Browser, served: Serving
) -> None:
    arguments = {"title": "again & again", "text": "two\nlines", "version": 2, "place": {"x": 1, "y": 2}}
    first = browser.run("/try/tools/trial__shapes", {"arguments": arguments})
    call = browser.data(f"/calls/{first['call']}")
    assert call["again"] == "trial__shapes"
    assert f'/try/tools/trial__shapes?call={first["call"]}"' in browser.page(f"/calls/{first['call']}")
    before = browser.data("/calls")["newest"]
    page = browser.page(f"/try/tools/trial__shapes?call={first['call']}")
    assert 'value="again &amp; again"' in page
    assert "two\nlines</textarea>" in page
    form = browser.send("/try/form/trial__shapes", [("as", "json"), ("json", json.dumps(arguments))])
    assert form.status_code == 200
    assert browser.data("/calls")["newest"] == before  # looking calls nothing
    assert "there is no call 99" in browser.data("/try/tools/trial__shapes?call=99")["error"]


def test_what_stands_for_something_hidden_is_never_an_argument_again(browser: Browser) -> None:
    long = "a text of many words. " * 500
    given = {"title": long, "text": "Bearer hunter22", "version": 1, "password": "hunter22"}
    run = browser.run("/try/tools/trial__shapes", {"arguments": given, "anyway": True})
    page = browser.page(f"/try/tools/trial__shapes?call={run['call']}")
    assert long.strip() in page
    assert "sha256" not in page


def test_secrets_of_a_past_call_have_to_be_given_again(browser: Browser) -> None:
    run = browser.run(
        "/try/tools/trial__shapes", {"arguments": {"title": "t", "text": "x", "password": "hunter22"}, "anyway": True}
    )
    page = browser.page(f"/try/tools/trial__shapes?call={run['call']}")
    assert "hunter22" not in page
    assert "***" not in page
