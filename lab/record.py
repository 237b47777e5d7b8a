"""What runs found, as TOML: a file for each framework in docs/matrix/frameworks, for each host in docs/matrix/hosts."""

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from lab.frameworks import ROOT, Framework
from lab.hosts import Host
from lab.judge import Finding

FOLDER = ROOT / "docs" / "matrix" / "frameworks"
HOSTS_FOLDER = ROOT / "docs" / "matrix" / "hosts"


@dataclass(frozen=True)
class Record:
    """What was found of one framework or host: by API, by setting, by case. A host has no `program`."""

    name: str
    title: str
    package: str
    version: str
    program: str
    date: str
    findings: Mapping[str, Mapping[str, Mapping[str, Finding]]]
    profiles: Mapping[str, str]
    models: Mapping[str, str]


def written(subject: Framework | Host, findings: Mapping[str, Mapping[str, Mapping[str, Finding]]]) -> str:
    """The file of a framework or a host."""
    out = tomlkit.document()
    is_host = isinstance(subject, Host)
    what, command = ("host", "lab") if is_host else ("framework", "frameworks")
    out.add(tomlkit.comment(f"Written by `make {command}`: what a {what}'s model got to see of each case."))
    out.add("title", subject.title)
    out.add("package", subject.package)
    out.add("version", subject.version())
    if not is_host:
        out.add("program", subject.program.name)
    out.add("date", datetime.datetime.now(datetime.UTC).date())
    for api in subject.apis:
        table = tomlkit.table()
        table.add("model", api.model)
        table.add("profile", api.profile)
        settings = tomlkit.table(is_super_table=True)
        for setting, by_case in findings[api.name].items():
            cells = tomlkit.table()
            for case, finding in by_case.items():
                cells.add(case, _cell(finding))
            settings.add(setting, cells)
        table.add("found", settings)
        out.add(api.name, table)
    return tomlkit.dumps(out)


def _cell(finding: Finding) -> Any:
    cell = tomlkit.inline_table()
    cell.add("is", finding.word)
    if finding.images:
        cell.add("shown", finding.shown)
        cell.add("of", finding.images)
    if finding.why:
        cell.add("why", finding.why)
    return cell


def records(folder: Path = FOLDER) -> tuple[Record, ...]:
    """Every file, in the order of the titles."""
    found = (read_record(path.stem, path.read_text("utf-8")) for path in folder.glob("*.toml"))
    return tuple(sorted(found, key=lambda record: record.title.casefold()))


def read_record(name: str, text: str) -> Record:
    """Read the file of a framework or a host."""
    data = tomllib.loads(text)
    apis: dict[str, Any] = {name: value for name, value in data.items() if isinstance(value, dict)}
    return Record(
        name=name,
        title=data["title"],
        package=data["package"],
        version=data["version"],
        program=data.get("program", ""),
        date=data["date"].isoformat(),
        findings={api: _findings(values) for api, values in apis.items()},
        profiles={api: values["profile"] for api, values in apis.items()},
        models={api: values["model"] for api, values in apis.items()},
    )


def _findings(values: Mapping[str, Any]) -> dict[str, dict[str, Finding]]:
    return {
        setting: {
            case: Finding(cell["is"], cell.get("shown", 0), cell.get("of", 0), cell.get("why", ""))
            for case, cell in cells.items()
        }
        for setting, cells in values["found"].items()
    }
