"""The lab runs a framework that is installed anyway, on two cases: what `make frameworks` does for all of them."""

import dataclasses
import importlib.util
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from lab.cases import cases
from lab.frameworks import Framework, LabError, frameworks
from lab.record import records, written
from lab.run import main, prompts, run, stage

CHOSEN = {name: cases()[name] for name in ("chart", "in_text")}


def test_a_framework_is_run_in_every_setting_and_recorded(
    tmp_path, missing: Callable[[str, str], NoReturn], capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec("pydantic_ai") is None:
        missing("pydantic_ai", "run `make setup`, and the tests with .venv/bin/python")
    (framework,) = frameworks("pydantic-ai")
    framework = dataclasses.replace(framework, apis=framework.apis[:1])
    with stage(CHOSEN) as on:
        found = run(framework, on, CHOSEN, ("alone", "gateway", "proxy"))
    words = {setting: [one.word for one in by_case.values()] for setting, by_case in found["openai_chat"].items()}
    assert words == {"alone": ["seen", "lost"], **{setting: ["seen", "seen"] for setting in ("gateway", "proxy")}}
    assert "pydantic-ai, openai_chat, alone: 1 of 2 seen" in capsys.readouterr().out
    (tmp_path / "pydantic-ai.toml").write_text(written(framework, found), "utf-8")
    (record,) = records(tmp_path)
    assert record.findings == found
    assert (record.title, record.models) == ("Pydantic AI", {"openai_chat": "gpt-5.5"})
    assert tomllib.loads(written(framework, found))["package"] == "pydantic-ai-slim"


def test_a_framework_that_nobody_knows_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(LabError, match=r"no framework is called pidantic; there are .*pydantic-ai"):
        frameworks("pydantic-ai, pidantic")


def test_a_framework_that_cannot_be_installed_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def install(framework: Framework) -> None:
        if framework.name == "ag2":
            raise LabError("no space left")

    monkeypatch.setattr(Framework, "install", install)
    written_to: list[str] = []
    monkeypatch.setattr("lab.run.run", lambda framework, on, chosen: written_to.append(framework.name) or {})
    monkeypatch.setattr("lab.run.ROOT", tmp_path)
    monkeypatch.setattr("lab.run.FOLDER", tmp_path / "found")
    monkeypatch.setattr("lab.run.written", lambda framework, found: framework.name)
    assert main(["ag2", "agno"]) == 1
    assert written_to == ["agno"]
    assert (tmp_path / "found" / "agno.toml").read_text("utf-8") == "agno"
    assert "ag2 could not be run: no space left" in capsys.readouterr().err


def test_on_chat_completions_a_lost_picture_is_a_line_with_a_handle_and_the_proxy_shows_it(
    missing: Callable[[str, str], NoReturn],
) -> None:
    if importlib.util.find_spec("agents") is None:
        missing("agents", "run `make setup`, and the tests with .venv/bin/python")
    (framework,) = frameworks("openai-agents")
    framework = dataclasses.replace(framework, apis=tuple(api for api in framework.apis if api.name == "openai_chat"))
    chosen = {"chart": cases()["chart"]}
    with stage(chosen) as on:
        found = run(framework, on, chosen, ("alone", "profile", "proxy"))["openai_chat"]
    assert {setting: by_case["chart"].word for setting, by_case in found.items()} == {
        "alone": "lost",
        "profile": "named",
        "proxy": "seen",
    }


@pytest.mark.parametrize(
    ("framework", "setting", "tool"),
    [
        ("crewai", "alone", "chart"),
        ("crewai", "gateway", "cases_chart"),
        ("agno", "alone", "chart"),
        ("agno", "proxy", "cases__chart"),
        ("semantic-kernel", "alone", "gateway-chart"),
        ("semantic-kernel", "profile", "gateway-cases__chart"),
    ],
)
def test_a_tool_is_called_as_the_framework_calls_it(framework: str, setting: str, tool: str) -> None:
    chosen = {"chart": cases()["chart"]}
    asked = prompts(frameworks(framework)[0], setting, chosen, {"chart": "the mark."})
    assert asked == {"chart": f"This is the mark.\ncall {tool} {{}}"}
