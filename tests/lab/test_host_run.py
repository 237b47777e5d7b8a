"""The lab runs a host that is a program of its own: a small one, so that nothing has to be installed."""

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from lab.cases import Case, cases
from lab.explain import explanation, faults
from lab.frameworks import LabError, frameworks
from lab.host_run import host_stage, run_host, write_program
from lab.hosts import Host, host_files, hosts, load_host, unavailable
from lab.judge import Finding
from lab.lab_table import table
from lab.record import records, written
from lab.run_hosts import main, run_inside

FAKES = Path(__file__).parent / "fake_host"
GOOD, BLIND = FAKES / "good.toml", FAKES / "blind.toml"
CHOSEN = ("text", "svg", "at_once", "photo")


def chosen(*names: str) -> dict[str, Case]:
    return {name: cases()[name] for name in names}


def words(found: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.word for name, finding in found.items()}


@pytest.fixture(scope="module")
def good() -> dict[str, dict[str, Finding]]:
    return run_inside(GOOD, CHOSEN, (), None)["openai_chat"]


def test_a_case_is_judged_by_what_follows_it_in_a_session_of_many(good: dict[str, dict[str, Finding]]) -> None:
    assert words(good["alone"]) == {"text": "seen", "svg": "refused", "at_once": "seen", "photo": "seen"}
    assert words(good["gateway"]) == dict.fromkeys(CHOSEN, "seen")
    assert (good["gateway"]["at_once"].shown, good["gateway"]["photo"].shown) == (2, 1)


def test_what_is_found_is_recorded_and_in_the_table(
    good: dict[str, dict[str, Finding]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = dataclasses.replace(load_host(GOOD), installer="pypi", requirement="good==1.2")
    (tmp_path / "good.toml").write_text(written(host, {"openai_chat": good}), "utf-8")
    (record,) = records(tmp_path)
    assert record.findings == {"openai_chat": good}
    monkeypatch.setattr("lab.lab_table.HOSTS_FOLDER", tmp_path)
    heading, row = table({"good"}).splitlines()
    assert heading.split("  ")[0] == "program"
    assert row.split() == ["A", "good", "host", "1.2", "openai_chat", "3", "of", "4", "4", "of", "4"]


def test_a_host_that_ends_at_a_case_goes_on_with_the_next() -> None:
    host = load_host(GOOD)
    (api,) = host.apis
    api = dataclasses.replace(api, environment={**api.environment, "DIES_AT": "case_chart"})
    asked = chosen("text", "chart", "resource", "long")
    with host_stage(api, asked) as on:
        found = run_host(host, api, "alone", on, asked)
    assert words(found) == {"text": "seen", "chart": "failed", "resource": "lost", "long": "seen"}
    assert "case_chart is too much" in found["chart"].why


def test_a_host_that_never_asks_its_model_is_an_error_with_what_it_said() -> None:
    host = load_host(GOOD)
    (api,) = host.apis
    api = dataclasses.replace(api, start=("${python}", "-c", "print('no model here')"))
    asked = chosen("text")
    with host_stage(api, asked) as on, pytest.raises(LabError, match=r"model was not asked(?s:.)*no model here"):
        run_host(host, api, "alone", on, asked)


def test_what_a_host_cannot_do_explains_what_is_named_and_nothing_worse() -> None:
    host = load_host(BLIND)
    (api,) = host.apis
    named, lost = Finding("named", 0, 1), Finding("lost", 0, 1, "not read")
    seen = Finding("seen", 1, 1)
    assert explanation(api, "pdf", cases(), named) == "it has no way to show documents"
    assert explanation(api, "pdf", cases(), lost) is None
    assert explanation(api, "chart", cases(), named) is None
    assert faults(host, api, {"gateway": {"chart": seen, "pdf": named, "sound": lost}}, cases()) == [
        "blind, openai_chat, through the gateway: sound is lost (not read), and nothing explains it"
    ]


def test_a_simulator_that_says_something_else_than_the_host_is_a_fault() -> None:
    host = dataclasses.replace(load_host(GOOD), installer="pypi", requirement="good==1.2")
    (api,) = host.apis
    found = {"alone": {"chart": Finding("lost", 0, 1, "not read: x"), "text": Finding("seen", 0, 0)}}
    (fault,) = faults(host, api, found, cases())
    assert fault == (
        "the simulator of A good host says that chart is seen, 1 of 1 pictures; "
        "A good host on openai_chat: lost, 0 of 1 pictures (not read: x)"
    )


def test_a_host_that_nobody_knows_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(LabError, match=r"no host is called codecs; there are .*codex"):
        hosts("codex codecs")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("codecs", r"no host or framework is called codecs; there are ag2, .*codex, .*strands"),
        ("zed", "zed cannot be run: "),
    ],
)
def test_the_lab_starts_nothing_if_one_of_its_names_cannot_be_run(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["lab", "codex", "pydantic-ai", name])
    assert main() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(said, err)


@pytest.mark.parametrize("error", [LabError("no space left"), IndexError("list index out of range")])
def test_one_that_cannot_be_run_costs_only_itself_and_has_no_row_of_an_earlier_day(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_and_record(host: Host) -> list[str]:
        if host.name == "codex":
            raise error
        return []

    monkeypatch.setattr("lab.run_hosts.run_and_record", run_and_record)
    monkeypatch.setattr("sys.argv", ["lab", "codex", "gemini-cli"])
    assert main() == 1
    out, err = capsys.readouterr()
    assert f"codex could not be run: {error}" in err
    assert "Gemini CLI  " in out
    assert "Codex  " not in out
    assert out.endswith("- codex could not be run: see above\n")


@pytest.mark.parametrize("text", ["title = 1", 'title = "X"\nsurprise = 1', "[apis.openai_chat]"])
def test_a_file_that_is_not_a_hosts_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "wrong.toml").write_text(text, "utf-8")
    with pytest.raises(LabError, match=r"wrong\.toml: "):
        load_host(tmp_path / "wrong.toml")


def test_a_host_that_needs_a_python_that_is_not_there_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.hosts.INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    host = dataclasses.replace(load_host(GOOD), installer="pypi", requirement="good==1.2", python="3.99")
    with pytest.raises(LabError, match=r"A good host needs Python 3.99: no python3.99 is on PATH"):
        host.install()


def test_a_python_that_only_says_what_it_could_start_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in (("shims", 127), ("real", 0)):
        (tmp_path / name).mkdir()
        write_program(tmp_path / name / "python3.99", ["sh", "-c", f"exit {code}"])
    monkeypatch.setattr("lab.hosts.INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}{os.pathsep}{tmp_path / 'real'}{os.pathsep}{os.environ['PATH']}")
    commands: list[Sequence[str]] = []
    monkeypatch.setattr("lab.hosts.run_command", lambda command, **_: commands.append(command))
    host = dataclasses.replace(load_host(GOOD), installer="pypi", requirement="good==1.2", python="3.99")
    host.install()
    assert commands[0][:3] == [str(tmp_path / "real" / "python3.99"), "-m", "venv"]


def test_every_host_is_complete_and_says_what_it_is_installed_from() -> None:
    every: tuple[Host, ...] = hosts()
    assert {host.name for host in every} == set(host_files())
    for host in every:
        assert host.installer in ("npm", "pypi"), host.name
        assert host.package, host.name
        assert host.version()[0].isdigit(), host.name
        assert host.apis, host.name
    assert not set(unavailable()) & set(host_files())
    assert all(one["title"] and one["why"] for one in unavailable().values())


def test_every_profile_of_a_host_is_run_or_says_why_it_cannot_be() -> None:
    for_no_host = {"default", "passthrough", "text-only", "agent-loop", "inspector"}
    run = {one.profile for host in hosts() for one in host.apis} | {one.name for one in frameworks()}
    covered = for_no_host | run | set(host_files()) | set(unavailable())
    # Those of one host for single model APIs begin with its name.
    missing = [one for one in builtin_profiles() if not any(f"{one}-".startswith(f"{name}-") for name in covered)]
    assert not missing, "give it a file in lab/hosts, or an entry in lab/hosts/unavailable.toml"
