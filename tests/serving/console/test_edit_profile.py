"""Editing a profile in the console: its effect on a real call, and what is written."""

import json
import sys
import tomllib
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from gateway.config.builtin_profiles import builtin_profiles, measured_names
from gateway.core.profiles.host_profiles import PATHS
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_texts import changed_values
from gateway.serving.console.profile_fields import profile_fields
from tests.serving.console.browser import Browser, opened
from tests.serving.console.conftest import HOST, SERVERS, Shown, shown

pytestmark = pytest.mark.anyio

AS_JSON = {"Content-Type": "application/json"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own profiles."""
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", str(tmp_path / "profiles"))
    return tmp_path / "profiles"


@pytest.fixture
async def console(folder: Path) -> AsyncGenerator[Shown]:
    """The console of a gateway with the server of pictures, which is ready."""
    server = {"command": sys.executable, "args": [str(SERVERS / "media_stdio.py")]}
    async with shown({"media": server}) as one:
        await one.enter()
        assert await one.gateway.upstreams["media"].ready(60)
        yield one


async def post(one: Shown, path: str, **given: str) -> tuple[int, Any]:
    answer = await one.browser.post(f"/console/api{path}", json=given)
    return answer.status_code, answer.json()


def written(shown: dict[str, Any]) -> dict[str, Any]:
    """What a file that is new will hold, by the lines of its difference."""
    return tomllib.loads("\n".join(line["text"][1:] for line in shown["lines"] if line["kind"] != "place"))


async def save(one: Shown, name: str, **given: str) -> tuple[int, Any]:
    """Look at a change, and save it."""
    status, effect = await post(one, f"/effect/{name}", **given)
    return await post(one, f"/save/{name}", **given, mark=(effect.get("mark") or "") if status == 200 else "")


async def test_the_effect_is_shown_on_a_real_call_before_anything_is_written(console: Shown, folder: Path) -> None:
    await console.call("media__large_picture")
    await console.call("media__pid")
    form = await console.json("/edit/claude-code")
    assert (form["call"], [call["number"] for call in form["calls"]]) == (1, [2, 1])  # the newest with media
    assert (form["is_own"], form["new_name"], form["extends"]) == (False, "my-claude-code", "claude-code")

    status, effect = await post(console, "/effect/claude-code", **{"call": "1", "image.max_edge": "300"})
    assert status == 200
    images = [part for part in effect["seen"]["through"]["parts"] if part["kind"] == "image"]
    assert [image["pixels"] for image in images] == [[300, 100]]
    assert effect["seen"]["is_simulated"]
    (changed,) = effect["seen"]["changed"]
    assert (changed["before"]["pixels"], changed["after"]["pixels"]) == ([2400, 800], [300, 100])
    assert written(effect) == {
        "title": "Claude Code, mine",
        "extends": "claude-code",
        "match": [{"client_name": "claude-code"}],
        "sets": {"image": {"max_edge": 300}},
    }
    assert effect["path"] == str(folder / "my-claude-code.toml")
    assert not folder.exists()
    page = await console.browser.post(
        "/console/effect/claude-code", data={"call": "1", "image.max_edge": "300"}, headers={"HX-Request": "true"}
    )
    assert 'hx-post="/console/save/claude-code"' in page.text
    assert "data-slide" in page.text


async def test_what_is_saved_is_used_at_once_and_can_be_edited_further(console: Shown, folder: Path) -> None:
    status, saved = await save(console, "claude-code", **{"image.max_edge": "300", "text.max_chars": "9,000"})
    assert (status, saved["path"]) == (200, str(folder / "my-claude-code.toml"))
    assert tomllib.loads((folder / "my-claude-code.toml").read_text()) == written(saved)
    assert console.gateway.router.profile_of(HOST).name == "my-claude-code"
    assert console.gateway.router.profile_of(HOST).image.max_edge == 300
    assert (await console.json("/hosts/my-claude-code"))["origin"] == "own"
    assert not measured_names(console.gateway.settings)  # so a calibration extends it

    form = await console.json("/edit/my-claude-code")
    fields = {field["path"]: field for field in form["fields"]}
    assert (form["is_own"], fields["image.max_edge"]["value"]) == (True, "300")
    assert fields["image.max_edge"]["parent_value"] == "2,000"
    back = {"image.max_edge": "", "text.max_chars": "9000", "error.media": "line"}
    status, saved = await save(console, "my-claude-code", **back)
    assert (status, saved["problem"]) == (200, None)
    sets = tomllib.loads((folder / "my-claude-code.toml").read_text())["sets"]
    assert sets == {"text": {"max_chars": 9000}, "error": {"media": "line"}}
    assert console.gateway.router.profile_of(HOST).image.max_edge == 2000


async def test_a_measured_value_that_is_changed_loses_its_evidence_alone(console: Shown, folder: Path) -> None:
    folder.mkdir()
    (folder / "measured.toml").write_text(
        'extends = "codex"\n[[fact]]\nlevel = "measured"\nsource = "s"\nchecked = 2026-11-20\n'
        "sets.image.max_count = 3\nsets.image.max_edge = 800\n"
    )
    status, saved = await save(console, "measured", **{"image.max_edge": "500"})
    assert (status, saved["path"]) == (200, str(folder / "measured.toml"))
    document = tomllib.loads((folder / "measured.toml").read_text())
    assert document["sets"] == {"image": {"max_edge": 500}}
    assert [fact["sets"] for fact in document["fact"]] == [{"image": {"max_count": 3}}]
    profile = await console.json("/hosts/measured")
    known = {value["path"]: value["evidence"] for value in profile["own"]}
    assert (profile["origin"], known["image.max_edge"], known["image.max_count"]["source"]) == ("measured", None, "s")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image.max_edge": "-3"}, "image.max_edge"),
        ({"image.max_edge": "wide"}, "image.max_edge"),
        ({"image.max_edge": "9" * 5_000}, "image.max_edge"),
        ({"image.max_bytes": "5 parsecs"}, "image.max_bytes"),
        ({"image.show": "<script>"}, "image.show"),
        ({"rescue": "perhaps"}, "rescue"),
        ({"tools.meta": "{"}, "not JSON"),
        ({"tools.meta": "[1]"}, "tools.meta"),
        ({"tools.meta": "[" * 50_000}, "not JSON"),
        ({"output.model_api": "nobody"}, "nobody"),
        ({"image.types": "image/\ud800"}, "cannot be written"),
        ({"features.broken": "everything"}, "features.broken"),
        ({"rescue": "false", "name": "../evil"}, "cannot be the name"),
        ({"rescue": "false", "name": "codex"}, "already"),
        ({"rescue": "false", "name": "x" * 200}, "cannot be the name"),
        ({"rescue": "false", "name": "a\nb"}, "cannot be the name"),
        ({}, "nothing is changed"),
        ({"no.such.value": "1", "call": "1"}, "nothing is changed"),
    ],
)
async def test_what_does_not_fit_is_refused_and_nothing_written(
    folder: Path, given: dict[str, str], words: str
) -> None:
    async with shown({}) as one:
        await one.enter()
        content = json.dumps(given)
        answer = await one.browser.post("/console/api/save/claude-code", content=content, headers=AS_JSON)
        assert (answer.status_code, words in answer.json()["error"]) == (400, True), answer.text
        page = await one.browser.post(
            "/console/save/claude-code", content=content, headers={**AS_JSON, "HX-Request": "true"}
        )
        assert page.status_code == 200
        assert "<script>" not in page.text
        assert not folder.exists()


async def test_a_call_that_is_not_there_is_said(console: Shown) -> None:
    for number in ("7", "x", "²", "9" * 4_000):
        status, answer = await post(console, "/effect/codex", call=number)
        assert (status, "no" in answer["error"]) == (400, True)
    status, effect = await post(console, "/effect/codex", call="")
    assert (status, effect["seen"], effect["lines"]) == (200, None, [])
    assert (await post(console, "/effect/nobody"))[0] == 400


async def test_without_a_folder_the_effect_is_shown_and_nothing_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", "")
    async with shown({}) as one:
        await one.enter()
        status, effect = await post(one, "/effect/claude-code", rescue="false")
        assert (status, effect["path"], "rescue = false" in str(effect["lines"])) == (200, None, True)
        status, answer = await save(one, "claude-code", rescue="false")
        assert (status, "MCP_GATEWAY_PROFILES" in answer["error"]) == (400, True)


def test_an_untouched_form_changes_nothing_in_any_profile() -> None:
    for profile in builtin_profiles().values():
        fields = profile_fields(profile, None)
        assert {field["path"] for field in fields} == set(PATHS)
        assert changed_values(profile, {field["path"]: field["value"] for field in fields}) == {}


def test_fields_are_typed_as_the_model_is() -> None:
    kinds = {field["path"]: (field["kind"], field["choices"]) for field in profile_fields(Profile(name="x"), None)}
    assert kinds["image.show"] == ("choice", ["native", "line", "file"])
    assert kinds["rescue"] == ("choice", ["false", "true"])
    assert kinds["apps.shows"] == ("choice", ["", "false", "true"])
    for path in ("image.max_bytes", "wait.tools_list", "audio.max_seconds", "text.max_chars"):
        assert kinds[path] == ("number", [])
    assert kinds["image.types"] == kinds["features.broken"] == ("list", [])
    assert kinds["tools.meta"] == ("json", [])
    assert kinds["tools.name_chars"] == kinds["output.model_api"] == ("text", [])
    given = {"apps.shows": "true", "image.types": "a/b , c/d,", "wait.call": "1m", "tools.meta": '{"a": 1}'}
    assert changed_values(Profile(name="x"), given) == {
        "apps.shows": True,
        "image.types": ["a/b", "c/d"],
        "wait.call": "1m",
        "tools.meta": {"a": 1},
    }


CONFIG = """# what my host takes
[profiles.mine] # mine
extends = "claude-code"
match = [{ client_name = "claude-code" }]
sets = { "image.max_edge" = 1_024 } # pixels

# the server
[upstreams.media]
command = COMMAND
args = [ARGUMENT]
env = { API_KEY = "secret-of-mine-1" }
"""


@pytest.fixture
def config(tmp_path: Path, folder: Path) -> Path:
    """The path of the configuration of a gateway with a profile."""
    return tmp_path / "gateway.toml"


@pytest.fixture
def browser(config: Path) -> Generator[Browser]:
    """The console of a gateway that is a process, whose configuration has a profile."""
    text = CONFIG.replace("COMMAND", json.dumps(sys.executable))
    with opened(config, text.replace("ARGUMENT", json.dumps(str(SERVERS / "media_stdio.py")))) as one:
        yield one


def test_a_profile_of_the_configuration_is_changed_there_after_its_difference_was_shown(
    browser: Browser, config: Path, folder: Path
) -> None:
    before = config.read_text()
    form = browser.json("/edit/mine")
    assert (form["is_own"], form["extends"], form["file"]) == (True, "claude-code", str(config))
    given = {"image.max_edge": "300", "rescue": "false"}
    effect = browser.post("/effect/mine", given)
    assert (effect["path"], effect["is_configuration"]) == (str(config), True)
    changed = [(line["kind"], line["text"]) for line in effect["lines"] if line["kind"] in ("added", "removed")]
    assert changed == [
        ("removed", '-sets = { "image.max_edge" = 1_024 } # pixels'),
        ("added", '+sets = {"image.max_edge" = 300, rescue = false} # pixels'),
    ]
    assert config.read_text() == before
    assert 'class="diff"' in browser.part("/effect/mine", given)
    saved = browser.post("/save/mine", {**given, "mark": effect["mark"]})
    assert (saved["path"], saved["problem"]) == (str(config), None)
    assert config.read_text() == before.replace(changed[0][1][1:], changed[1][1][1:])
    assert not folder.exists()
    # It is in force: for the next call of such a host as well.
    fields = {field["path"]: field["value"] for field in browser.json("/edit/mine")["fields"]}
    assert (fields["image.max_edge"], fields["rescue"]) == ("300", "false")
    # Back to the value of the parent: it is removed.
    back = {"rescue": "true", "image.max_edge": "300"}
    browser.post("/save/mine", {**back, "mark": browser.post("/effect/mine", back)["mark"]})
    assert tomllib.loads(config.read_text())["profiles"]["mine"]["sets"] == {"image.max_edge": 300}


def test_a_change_that_was_not_seen_is_not_written(browser: Browser, config: Path) -> None:
    before = config.read_text()
    given = {"image.max_edge": "300"}
    mark = browser.post("/effect/mine", given)["mark"]
    assert "look at the change" in browser.post("/save/mine", given, 400)["remedy"]
    browser.post("/save/mine", {"image.max_edge": "301", "mark": mark}, 400)
    assert config.read_text() == before
    config.write_text(before + "# by hand\n")
    assert "nothing was written" in browser.post("/save/mine", {**given, "mark": mark}, 400)["error"]
    assert config.read_text() == before + "# by hand\n"
    # What cannot be used is not loaded: the gateway has the profile still, whenever it looks at the file.
    config.write_text(before.replace("[profiles.mine]", "[profiles.others]") + "[nonsense]\n")
    assert "[profiles.mine]" in browser.post("/effect/mine", given, 400)["error"]


def test_secrets_near_a_changed_profile_are_not_shown(browser: Browser, config: Path) -> None:
    config.write_text(config.read_text().replace("[profiles.mine]", "# key: secret-of-mine-1\n[profiles.mine]"))
    effect = browser.post("/effect/mine", {"image.max_edge": "300"})
    assert effect["lines"]
    assert "secret-of-mine-1" not in json.dumps(effect)


def test_a_saved_change_that_cannot_be_used_is_said(browser: Browser, config: Path) -> None:
    config.write_text(config.read_text() + "\n[nonsense]\nx = 1\n")
    given = {"image.max_edge": "300"}
    saved = browser.post("/save/mine", {**given, "mark": browser.post("/effect/mine", given)["mark"]})
    assert "nonsense" in saved["problem"]
    fields = {field["path"]: field["value"] for field in browser.json("/edit/mine")["fields"]}
    assert fields["image.max_edge"] == "1024"
