"""docs/hosts/lab.md: what the models of real hosts see, from the runs of `make lab`; and how each profile is known."""

from collections.abc import Iterable, Mapping

from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import NAMELESS, known_from, own_evidence
from lab.cases import cases
from lab.explain import explained, notes_of
from lab.hosts import host_files, unavailable
from lab.judge import Finding
from lab.lab_table import counted, through
from lab.record import FOLDER, HOSTS_FOLDER, Record, records

_BEFORE = """# Hosts that were run

*Written by docs/generate.py from docs/matrix/hosts, which `make lab` writes.* Each of these programs is installed from
its registry and started in a home of its own, in a network that has nothing but a stand-in of its
[model API](../testing.md). Its model calls a tool of every case: *directly* from an MCP server, and *with the gateway*
before the same server (`mcp-gateway serve --profile ...`). What is judged is the requests that follow.

*seen*, *named*, *lost*, *refused* and *failed* are explained with the [frameworks](../frameworks.md), which are run in
the same way. The counts are of cases that are *seen*, followed by those that are *named*. [lab](../../lab/README.md)
says how to run one, and how to add another. The [matrix](matrix.md) has the same as JSON, with the earlier versions.

| host | version | run on | model API | directly | with the gateway | profile |
|---|---|---|---|---|---|---|
"""
_REPORTED = ("maintainer", "user_report")


def lab_page() -> str:
    """The whole page."""
    known = host_files()
    found = [record for record in records(HOSTS_FOLDER) if record.name in known]
    parts = [_BEFORE + "\n".join(_row(record, api) for record in found for api in record.findings), ""]
    parts += [line for record in found for line in _section(record)]
    parts += ["## Hosts that are not run", "", "| host | why |", "|---|---|"]
    missing = [(one["title"], one["why"]) for one in unavailable().values()]
    parts += [f"| {title} | {why} |" for title, why in sorted(missing, key=lambda row: row[0].casefold())]
    return "\n".join(parts).rstrip() + "\n"


def _row(record: Record, api: str) -> str:
    settings = record.findings[api]
    counts = f"{counted(settings['alone'].values())} | {counted(through(settings).values())}"
    name = f"[{record.title}](#{record.title.lower().replace(' ', '-')})"
    return f"| {name} | {record.version} | {record.date} | {api} | {counts} | `{record.profiles[api]}` |"


def _section(record: Record) -> list[str]:
    apis = notes_of(record.name, "host")
    lines = [f"## {record.title}", "", f"{record.package} {record.version}. Cases not listed are seen in both.", ""]
    for name, settings in record.findings.items():
        lines += [f"### {record.title} on {name}, {record.models[name]}", ""]
        lines += ["| a tool returns | directly | with the gateway | because |", "|---|---|---|---|"]
        lines += [
            f"| {case.title} | {_word(settings['alone'][key])} | {_word(through(settings)[key])} "
            f"| {explained(apis.get(name), key, through(settings)[key])} |"
            for key, case in cases().items()
            if any(by_case[key].word != "seen" for by_case in settings.values())
        ]
        lines.append("")
    return lines


def _word(found: Finding) -> str:
    return f"{found.word}, {found.shown} of {found.images} pictures" if found.images > 1 else found.word


def measured(profiles: Mapping[str, Profile]) -> dict[str, str]:
    """How each profile is known, by its name: a run of the lab, with version and day; else its best evidence."""
    runs = [(profile, run) for run in _runs() for profile in run.profiles.values() if profile not in NAMELESS]
    # The last run of the program that a profile is named after; of another with the same profile, if there is none.
    last = dict(sorted(runs, key=lambda found: (_is_own(*found), found[1].date)))
    return {name: _how(profile, profiles, last) for name, profile in profiles.items() if name not in NAMELESS}


def _runs() -> Iterable[Record]:
    files = set(host_files())
    return (*records(FOLDER), *(record for record in records(HOSTS_FOLDER) if record.name in files))


def _is_own(profile: str, run: Record) -> bool:
    return f"{profile}-".startswith(f"{run.name}-")


def _how(profile: Profile, profiles: Mapping[str, Profile], runs: Mapping[str, Record]) -> str:
    names = [profile.name, *profile.variants]
    if found := next(((name, runs[name]) for name in names if name in runs), None):
        run = found[1]
        program = "" if _is_own(*found) else f"{run.title} "
        return f"measured with {program}{run.version}, on {run.date}"
    match known_from(profile, profiles):
        case None:
            return "nothing"
        case "measured":
            facts = [fact for fact in own_evidence(profile, profiles).values() if fact.level == "measured"]
            last = max(facts, key=lambda fact: fact.checked)
            return f"measured with {last.host_version}, on {last.checked}"
        case "source":
            return "from source"
        case level:
            return "reported" if level in _REPORTED else level.replace("_", " ")
