"""The lab's table: every framework and host that was run, how much its model sees directly and with the gateway."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from lab.judge import Finding
from lab.record import FOLDER, HOSTS_FOLDER, Record, records

_THROUGH = ("profile", "gateway")
"""The setting that stands for the gateway: of a framework, the one with its profile named."""


def table(names: Collection[str] | None = None) -> str:
    """All that was recorded, or what is named, as aligned columns."""
    found = sorted((*records(FOLDER), *records(HOSTS_FOLDER)), key=lambda record: record.title.casefold())
    rows: list[tuple[str, ...]] = [("program", "version", "model API", "directly", "with the gateway")]
    for record in found:
        if names is None or record.name in names:
            rows += (_row(record, api) for api in record.findings)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def through(settings: Mapping[str, Mapping[str, Finding]]) -> Mapping[str, Finding]:
    """The findings with the gateway."""
    return next((settings[name] for name in _THROUGH if name in settings), dict[str, Finding]())


def counted(findings: Iterable[Finding]) -> str:
    """How many are seen, of how many, and how many are named."""
    words = Counter(finding.word for finding in findings)
    named = f", {words['named']} named" if words["named"] else ""
    return f"{words['seen']} of {words.total()}{named}"


def _row(record: Record, api: str) -> tuple[str, ...]:
    settings = record.findings[api]
    counts = counted(settings["alone"].values()), counted(through(settings).values())
    return (record.title, record.version, api, *counts)
