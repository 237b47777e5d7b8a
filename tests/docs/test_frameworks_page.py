"""docs/frameworks.md has every framework of the lab; and none is worse off with the gateway than alone."""

import re
from pathlib import Path

import pytest

from gateway.hosts.simulators.hosts import SIMULATORS
from lab.api_notes import KINDS
from lab.cases import cases
from lab.explain import faults
from lab.frameworks import Framework, frameworks
from lab.record import records
from lab.run import SETTINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text("utf-8")
RECORDS = {record.name: record for record in records()}
SHARED_NAMES = {
    # LangChain calls itself `mcp`, as clients do that write a PDF as base64 or lose it: where no profile is named, it
    # gets the document's text and a handle. Its own profile sends the document.
    *((name, "openai_responses", "gateway", "pdf") for name in ("agent-framework", "langchain", "langchain-mcp")),
    *((name, "openai_responses", "gateway", "pdf") for name in ("langgraph", "mcp-use")),
    # Pydantic AI calls itself `fastmcp`, as Agno does, which writes a PDF as base64.
    *(("pydantic-ai", api, "gateway", "pdf") for api in ("openai_chat", "openai_responses", "anthropic_messages")),
    # AG2 calls itself `mcp` too. On Responses it is the same with it.
    ("ag2", "openai_responses", "gateway", "pdf"),
    # On Chat Completions any picture ends AG2's run. Alone it has base64 as text in these two cases, of which the
    # gateway makes pictures. With its own profile they are lines with handles.
    ("ag2", "openai_chat", "gateway", "in_text"),
    ("ag2", "openai_chat", "gateway", "error"),
}
NOT_HEARD = {
    # Agno sends sound to every model of Chat Completions, and the stand-in takes it. Most models do not hear, so the
    # gateway names it with a handle; for one that does there is the profile `agno-audio`, and the proxy shows it.
    ("agno", "openai_chat", "gateway", "sound"),
    ("agno", "openai_chat", "profile", "sound"),
}
CELLS = [
    (name, api, setting, case)
    for name, record in RECORDS.items()
    for api, settings in record.findings.items()
    for setting in SETTINGS[1:]
    for case in settings[setting]
]


def test_every_framework_of_the_lab_was_run_as_its_file_says_now() -> None:
    known = {one.name: one for one in frameworks()}
    assert set(RECORDS) == set(known), "run: make frameworks"
    for name, record in RECORDS.items():
        assert record.profiles == {api.name: api.profile for api in known[name].apis}, name
        assert record.models == {api.name: api.model for api in known[name].apis}, name
        for settings in record.findings.values():
            assert list(settings) == list(SETTINGS), name
            assert all(by_case.keys() == cases().keys() for by_case in settings.values()), name


@pytest.mark.parametrize(("name", "api", "setting", "case"), CELLS)
def test_no_model_has_less_with_the_gateway_than_without(name: str, api: str, setting: str, case: str) -> None:
    settings = RECORDS[name].findings[api]
    is_worse = settings[setting][case].is_worse_than(settings["alone"][case])
    assert is_worse == ((name, api, setting, case) in SHARED_NAMES | NOT_HEARD)


@pytest.mark.parametrize("framework", frameworks(), ids=lambda one: one.name)
def test_every_cell_with_its_profile_is_seen_or_explained_and_simulators_agree(framework: Framework) -> None:
    found = RECORDS[framework.name].findings
    for api in framework.apis:
        assert api.simulator in SIMULATORS
        assert {*api.cannot, *api.not_yet, *api.differs, *api.reviewed} <= {*KINDS, *cases()}
        assert faults(framework, api, found[api.name], cases()) == []


@pytest.mark.parametrize("name", RECORDS)
def test_with_gateway_and_proxy_every_picture_is_seen(name: str) -> None:
    for api, settings in RECORDS[name].findings.items():
        for case, found in settings["proxy"].items():
            assert found.shown == found.images, f"{api}, {case}: {found}"


def test_the_page_has_a_row_for_each_framework_and_api() -> None:
    rows = re.findall(r"^\| \[([^]]+)\]\(#([^)]+)\) \| (\S+ \S+) \| (\S+) \|", PAGE, re.MULTILINE)
    assert [(title, version, api) for title, _, version, api in rows] == [
        (record.title, f"{record.package} {record.version}", api)
        for record in RECORDS.values()
        for api in record.findings
    ]
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.*)", PAGE, re.MULTILINE)}
    assert {anchor for _, anchor, _, _ in rows} == headings


@pytest.mark.parametrize("framework", frameworks(), ids=lambda one: one.name)
def test_a_framework_has_a_program_of_some_thirty_lines_and_bounded_requirements(framework) -> None:
    code = re.sub(r'\A""".*?"""', "", framework.program.read_text("utf-8"), flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 30
    assert "PROMPT = " in code
    if framework.environment is None:
        lines = framework.requirements.read_text("utf-8").splitlines()
        needed = [line for line in lines if line and not line.startswith("#")]
        assert needed
        assert all("<" in line for line in needed), "bounds on what is installed"
