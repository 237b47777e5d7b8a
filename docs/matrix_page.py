"""The matrix in the documentation: docs/hosts/matrix.md, the badges, and the table with filters, which the site has."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from gateway.core.profiles.matrix import CaseRecord, Cell, matrix_json_schema, matrix_text
from gateway.core.profiles.profile import Profile
from lab.badge import badge, badge_words
from lab.diff_words import sentences
from lab.matrix import MATRIX, RUNS, file_name, kept_runs, known_from_profiles, last_runs, matrix_files, run_records

BADGES = MATRIX / "badges"
TABLE = MATRIX / "table.html"
REPOSITORY = "https://github.com/mcp-multimodal-gateway/mcp-multimodal-gateway"
_LEVELS = {
    "run": "run",
    "calibrated": "calibrated",
    "measured": "measured",
    "source": "from source",
    "maintainer": "by its maintainer",
    "user_report": "reported",
}
_VERDICTS = ("seen", "named", "lost", "refused", "failed")
_BEFORE = """# The matrix

*Written by docs/generate.py from the lab's results and the profiles.* For every host and every kind of result: what its
model sees of it, directly and through the gateway, with which version, since when, and how that is known.

**[The table, with filters and history](../matrix/table.html)**. It is part of the site (`make site`), and needs no
network.

## As JSON

| file | |
|---|---|
| [schema.json](../matrix/schema.json) | the JSON Schema of all of them |
| `all.json`, beside it in the site | every record of the others |
| [profiles.json](../matrix/profiles.json) | hosts that are not run: what their profiles say, with the evidence |
| `runs/HOST/VERSION.json`, listed below | hosts that are run: one file for each version |

A record is one host and one case:

    {"host": "codex", "title": "Codex", "version": "0.169.0", "model_api": "openai_responses", "model": "gpt-5.5",
     "profile": "codex", "case": "error", "returns": "an error with a PNG",
     "directly": {"verdict": "seen", "shown": 1, "of": 1}, "gateway": {"verdict": "seen", "shown": 1, "of": 1},
     "evidence": {"level": "run", "reference": "make lab, @openai/codex 0.169.0"}, "date": "2026-11-23"}

| verdict | |
|---|---|
| `seen` | the model gets everything in its own form |
| `named` | a line of text with a handle stands for something |
| `lost` | something is missing, appears twice, or is base64 as text |
| `refused` | the model API answers 400 |
| `failed` | the host ended, or no result reached the model |

Of what is not `seen`, `why` says what the lab found, and `because`, with the gateway, what the host cannot do.

| evidence | |
|---|---|
| `run` | the lab ran the host: [how](lab.md) |
| `calibrated` | its model read codes: [calibrating](../calibrate.md#send-in-what-you-measured) |
| `measured`, `source`, `maintainer`, `user_report` | [as in its profile](evidence.md); `gateway` is not known |

`"format": 1` is the version of the form; a reader refuses a newer one.

## Changes between versions

    make lab-diff OLD=v1.2.0                                  # the lab's results then and now
    make lab-diff OLD=docs/matrix/runs/opencode/1.18.33.json NEW=docs/matrix/hosts/opencode.toml

prints sentences for a release note, such as "opencode 1.19.0 lost images beside structured content". OLD and NEW are
files or revisions of git. When a host is run with another version, the file of the former one stays.

"""
_BADGES = f"""## Badges

Of the cases with images: how many does the host's model see directly, on all model APIs that it was run on?

    [![images seen]({REPOSITORY}/raw/main/docs/matrix/badges/HOST.svg)]({REPOSITORY}/blob/main/docs/hosts/matrix.md)

"""


def matrix_pages(profiles: Mapping[str, Profile]) -> dict[Path, str]:
    """Return every file that docs/generate.py writes for the matrix."""
    files = matrix_files(profiles)
    schema = json.dumps(matrix_json_schema(), indent=1, ensure_ascii=False) + "\n"
    badges = {BADGES / f"{run.name}.svg": badge(run_records(run)) for run in last_runs()}
    return {**files, **badges, MATRIX / "schema.json": schema, MATRIX.parent / "hosts" / "matrix.md": _page(files)}


def _page(files: Iterable[Path]) -> str:
    """docs/hosts/matrix.md."""
    now = {run.name: run for run in last_runs()}
    versions: dict[str, set[str]] = {name: set() for name in now}
    for path in (*RUNS.glob("*/*.json"), *files):
        if path.parent.parent == RUNS:
            versions.setdefault(path.parent.name, set()).add(path.stem)
    lines = [_BADGES + "| host | badge | runs as JSON |\n|---|---|---|"]
    for name in sorted(versions, key=str.casefold):
        run = now.get(name)
        words = badge_words(run_records(run)) if run else ""
        image = f"![{words}](../matrix/badges/{name}.svg)" if run else ""
        latest = file_name(run.version) if run else ""
        listed = sorted(versions[name], key=lambda version: (version != latest, version))
        links = ", ".join(f"[{version}](../matrix/runs/{name}/{version}.json)" for version in listed)
        lines.append(f"| {run.title if run else name} | {image} | {links} |")
    return _BEFORE + "\n".join(lines) + "\n"


# -- what only the site has ----------------------------------------------------------------------------


def published() -> dict[str, bytes]:
    """Return the files of the matrix in the site, by their path below `matrix/`."""
    files = (MATRIX / "schema.json", MATRIX / "profiles.json", *RUNS.glob("*/*.json"), *BADGES.glob("*.svg"))
    kept, known = kept_runs(), known_from_profiles()
    everything = [*(record for runs in kept.values() for run in runs for record in run), *known]
    return {
        **{path.relative_to(MATRIX).as_posix(): path.read_bytes() for path in sorted(files)},
        "all.json": matrix_text(everything).encode(),
        "table.html": table_page(kept, known).encode(),
    }


def table_page(kept: Mapping[str, Sequence[Sequence[CaseRecord]]], known: Sequence[CaseRecord]) -> str:
    """Return the table with its filters, all rows in it, so that it needs neither a network nor a server."""
    runs = [(record, at < len(runs) - 1) for runs in kept.values() for at, run in enumerate(runs) for record in run]
    rows = sorted([*runs, *((record, False) for record in known)], key=lambda row: row[0].title.casefold())
    records = [record for record, _ in rows]
    texts = {
        "hosts": _options({record.host: record.title for record in records}),
        "cases": _options({record.case: record.returns for record in records}),
        "verdicts": _options({word: word for word in _VERDICTS}),
        "levels": _options({record.evidence.level: _LEVELS[record.evidence.level] for record in records}),
        "rows": "\n".join(_row(record, earlier) for record, earlier in rows),
        "history": "\n".join(_history(kept)) or "<p>No host has been run with more than one version yet.</p>",
    }
    page = TABLE.read_text("utf-8")
    for name, text in texts.items():
        page = page.replace(f"<!-- {name} -->", text)
    return page


def _options(words: Mapping[str, str]) -> str:
    return "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in words.items())


def _row(record: CaseRecord, earlier: bool) -> str:
    said = {
        "host": record.host,
        "case": record.case,
        "directly": record.directly.verdict if record.directly else "",
        "gateway": record.gateway.verdict if record.gateway else "",
        "level": record.evidence.level,
        **({"earlier": "1"} if earlier else {}),
    }
    api = f" <small>on {escape(record.model_api)}</small>" if record.model_api else ""
    cells = (
        escape(record.version or ""),
        escape(record.returns),
        _verdict(record.directly),
        _verdict(record.gateway),
        _known(record),
    )
    data = "".join(f' data-{name}="{escape(value)}"' for name, value in said.items())
    host = f'<th role="rowheader" scope="row"><div>{escape(record.title)}{api}</div></th>'
    others = "".join(f'<td role="cell">{f"<div>{text}</div>" if text else ""}</td>' for text in cells)
    return f'<tr role="row"{data}>{host}{others}</tr>'


def _verdict(cell: Cell | None) -> str:
    if cell is None:
        return ""
    counts = f" <small>{cell.shown} of {cell.of} images</small>" if cell.of and cell.of > 1 else ""
    why = "".join(f" <small>{escape(words)}</small>" for words in (cell.why, _because(cell)) if words)
    return f'<span class="verdict {cell.verdict}">{cell.verdict}</span>{counts}{why}'


def _because(cell: Cell) -> str:
    return f"because {cell.because}" if cell.because else ""


def _known(record: CaseRecord) -> str:
    words = f"{_LEVELS[record.evidence.level]}, {record.date}"
    return f"<details><summary>{words}</summary>{escape(record.evidence.reference)}</details>"


def _history(kept: Mapping[str, Sequence[Sequence[CaseRecord]]]) -> Iterator[str]:
    for host, runs in sorted(kept.items()):
        if len(runs) < 2:
            continue
        parts = [f'<section data-history="{escape(host)}"><h3>{escape(runs[-1][0].title)}</h3><ul>']
        for old, new in reversed(list(pairwise(runs))):
            lines = sentences(old, new) or [f"{new[0].title} {new[0].version}: nothing changed since {old[0].version}"]
            parts += [f"<li>{escape(line)} <small>({new[0].date})</small></li>" for line in lines]
        yield "\n".join([*parts, "</ul></section>"])
