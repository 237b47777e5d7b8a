"""docs/frameworks.md: what the models of agent frameworks see, from the runs of `make frameworks`."""

from collections import Counter
from collections.abc import Iterable, Mapping

from lab.cases import cases
from lab.explain import explained, notes_of
from lab.judge import Finding
from lab.lab_table import through
from lab.record import Record, records

SETTINGS = {
    "alone": "alone",
    "gateway": "gateway",
    "profile": "gateway, profile named",
    "proxy": "gateway and proxy",
}
_BEFORE = """# Agent frameworks

*Written by docs/generate.py from docs/matrix/frameworks, which `make frameworks` writes.* How much of
a tool's results the models of agent frameworks see. Every framework is installed and run by a program of some 30 lines
in [examples/agents](../examples/README.md#agents), against stand-ins of the model APIs ([testing](testing.md)), which
refuse what the real ones refuse. The judgement is based on the requests that arrive there, not on what a framework says
about itself.

| column | |
|---|---|
| alone | the framework's own MCP client, connected to the MCP server |
| gateway | connected to `mcp-gateway serve --http`, at `/mcp` |
| gateway, profile named | the same, with the framework's profile in the url: `/mcp/<profile>` |
| gateway and proxy | the same, with the model called through the gateway's `[model_proxy]` |
| because | why the model does not see all of it with the profile named: what the framework cannot do |

| word | |
|---|---|
| seen | the model gets everything in its own form: texts, pictures, documents, sound |
| named | something is a line of text with its handle, or a document its text and a handle; nothing is lost silently |
| lost | something is missing, appears twice, or is base64 as text |
| refused | the model API answers 400 |
| failed | the program ended, or no result reached the model |

To try another framework, see [lab](../lab/README.md).

"""


def frameworks_page() -> str:
    """The whole page."""
    found = records()
    lines = [
        _BEFORE + f"| framework | version | model API | {' | '.join(SETTINGS.values())} | profile | program |",
        f"|{'---|' * (len(SETTINGS) + 5)}",
        *(_row(record, api) for record in found for api in record.findings),
        "",
        "The counts are of cases that are *seen*, followed by those that are *named*.",
        "",
        *(line for record in found for line in _section(record)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(record: Record, api: str) -> str:
    counts = " | ".join(_count(record.findings[api][setting].values()) for setting in SETTINGS)
    program = f"[{record.program}](../examples/agents/{record.program})"
    name = f"[{record.title}](#{_anchor(record)})"
    return f"| {name} | {record.package} {record.version} | {api} | {counts} | `{record.profiles[api]}` | {program} |"


def _count(findings: Iterable[Finding]) -> str:
    words = Counter(finding.word for finding in findings)
    named = f", {words['named']} named" if words["named"] else ""
    return f"{words['seen']} of {words.total()}{named}"


def _anchor(record: Record) -> str:
    return record.title.lower().replace(" ", "-")


def _section(record: Record) -> list[str]:
    """Return the section of a framework: the cases that are not seen in every setting."""
    lines = [
        f"## {record.title}",
        "",
        f"Run on {record.date}. Cases not listed are seen in every setting.",
        "",
    ]
    notes = notes_of(record.name, "framework")
    for api, settings in record.findings.items():
        lines += [f"### {record.title} on {api}, {record.models[api]}", ""]
        lines += [f"| a tool returns | {' | '.join(SETTINGS.values())} | because |", f"|{'---|' * (len(SETTINGS) + 2)}"]
        lines += [
            f"| {case.title} | {' | '.join(_words(settings, setting, name) for setting in SETTINGS)} "
            f"| {explained(notes.get(api), name, through(settings)[name])} |"
            for name, case in cases().items()
            if any(by_case[name].word != "seen" for by_case in settings.values())
        ]
        lines.append("")
    return lines


def _words(settings: Mapping[str, Mapping[str, Finding]], setting: str, case: str) -> str:
    found = settings[setting][case]
    if found.images > 1:
        return f"{found.word}, {found.shown} of {found.images} pictures"
    return found.word
