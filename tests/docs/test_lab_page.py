"""docs/hosts/lab.md has every host that was run; and none has less with the gateway unless it is said why."""

from pathlib import Path

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.hosts.simulators.hosts import SIMULATORS
from lab.api_notes import KINDS
from lab.cases import cases
from lab.explain import explanation, faults
from lab.host_run import SETTINGS
from lab.hosts import hosts, unavailable
from lab.record import FOLDER, HOSTS_FOLDER, records

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "hosts" / "lab.md").read_text("utf-8")
RECORDS = {record.name: record for record in records(HOSTS_FOLDER)}
HOSTS = {host.name: host for host in hosts()}


def test_every_host_of_the_lab_was_run_as_its_file_says_now() -> None:
    assert set(RECORDS) == set(HOSTS), "run: make lab"
    for name, record in RECORDS.items():
        assert (record.package, record.version) == (HOSTS[name].package, HOSTS[name].version()), name
        assert record.profiles == {api.name: api.profile for api in HOSTS[name].apis}, name
        for settings in record.findings.values():
            assert list(settings) == list(SETTINGS), name
            assert all(by_case.keys() == cases().keys() for by_case in settings.values()), name


@pytest.mark.parametrize("name", HOSTS)
def test_what_a_file_names_exists(name: str) -> None:
    for api in HOSTS[name].apis:
        assert api.profile in builtin_profiles()
        assert api.simulator in SIMULATORS, "a host that is run is simulated"
        assert {*api.cannot, *api.not_yet, *api.differs, *api.reviewed} <= {*KINDS, *cases()}


@pytest.mark.parametrize("name", HOSTS)
def test_every_cell_with_the_gateway_is_seen_or_explained_and_simulators_agree(name: str) -> None:
    found = RECORDS[name].findings
    assert [fault for api in HOSTS[name].apis for fault in faults(HOSTS[name], api, found[api.name], cases())] == []


@pytest.mark.parametrize("name", HOSTS)
def test_no_model_has_less_with_the_gateway_than_without_unless_it_is_said_why(name: str) -> None:
    for api in HOSTS[name].apis:
        alone, gateway = (RECORDS[name].findings[api.name][setting] for setting in SETTINGS)
        for case, finding in gateway.items():
            if finding.is_worse_than(alone[case]):
                assert explanation(api, case, cases(), finding), f"{api.name}: {case}"


def test_the_page_has_a_row_for_every_run_and_every_host_that_cannot_be_run() -> None:
    for name, record in RECORDS.items():
        anchor = record.title.lower().replace(" ", "-")
        for api in record.findings:
            assert f"[{record.title}](#{anchor}) | {record.version} | {record.date} | {api} |" in PAGE, name
    assert all(f"| {one['title']} | {one['why']} |" in PAGE for one in unavailable().values())


def test_how_a_host_is_known_says_version_and_day_or_that_it_was_not_run() -> None:
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    claude, zed = (
        next(line for line in readme.splitlines() if f"evidence.md#{name})" in line) for name in ("claude-code", "zed")
    )
    record = RECORDS["claude-code"]
    assert f"| measured with {record.version}, on {record.date} |" in claude
    assert "| from source |" in zed
    assert (
        f"The last [run of the lab](lab.md) was with version {record.version}, on {record.date}. Each limit below"
        in (DOCS / "hosts" / "claude-code.md").read_text("utf-8")
    )


def test_a_profile_of_several_programs_says_the_version_of_the_one_that_it_is_named_after() -> None:
    table = (DOCS / "hosts" / "README.md").read_text("utf-8")
    frameworks = {record.name: record for record in records(FOLDER)}
    assert {"langchain", "langchain-mcp", "langgraph", "mcp-use"} <= {
        name for name, record in frameworks.items() if "langchain" in record.profiles.values()
    }
    langchain = next(line for line in table.splitlines() if "evidence.md#langchain)" in line)
    own = frameworks["langchain"]
    assert f"| measured with {own.version}, on {own.date} |" in langchain
