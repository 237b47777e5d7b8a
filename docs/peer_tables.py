"""The tables of docs/models/README.md that compare our cells with those of other libraries, for docs/generate.py."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "models"
CORE = 25
"""The number of core cases, which come first; the others are about hygiene and limits."""

LEGEND = """## 35 results, here and in other libraries

The results are those of [tests/core/model_apis/cases.py](../../tests/core/model_apis/cases.py): 25 that tools really
return, 8 about hygiene, 2 at limits. Each cell judges the resulting request by the official types, the documented rules
and a strict stand-in of the API.

| word | |
|---|---|
| ok | native and valid |
| ok+ | valid; media follows in one message after the tool messages |
| line | the API has no place for it: one line of text names it, with the handle under which it is kept |
| ok, line | as much as the API takes at once; the rest is named in lines |
| INV | the official types refuse the request |
| RULE | a documented rule is broken: order of messages, an image beside the error flag, empty text, a wrong type |
| STR | base64 as text |
| DROP, PART | everything, or a part, is silently lost |
| err | the model is not told that the call failed |
| mime | a wrong type is declared |
| CR | an exception before any request |
"""


def tables(targets: Sequence[str]) -> str:
    """Return our row for each target, followed by those of other libraries on the same API."""
    peers = tomllib.loads((FOLDER / "peers.toml").read_text("utf-8"))
    cases: list[str] = peers["cases"]
    ours = {target: json.loads((FOLDER / "cells" / f"{target}.json").read_text("utf-8")) for target in targets}
    rows: list[tuple[str, str, list[str]]] = []
    for target in sorted(targets, key=lambda name: (name not in {row["target"] for row in peers["row"]}, name)):
        rows.append((f"**mcp-gateway** / {target}", target, [ours[target][case] for case in cases]))
        rows += [(f"{row['peer']} / {target}", target, row["cells"].split()) for row in _of(peers, target)]
    return "\n".join(
        [
            LEGEND,
            f"The others were measured on {peers['measured']}: {' '.join(peers['versions'].split())}. The figures are"
            " counts of these cases, not of real traffic, and later versions may behave differently.\n",
            "### The core\n",
            *_table(cases[:CORE], [(name, cells[:CORE]) for name, _, cells in rows]),
            "\n### Hygiene and limits\n",
            *_table(cases[CORE:], [(name, cells[CORE:]) for name, _, cells in rows]),
        ]
    )


def _of(peers: Mapping[str, Any], target: str) -> list[Mapping[str, Any]]:
    return [row for row in peers["row"] if row["target"] == target]


def _table(cases: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    lines = [f"| | arrives | {' | '.join(cases)} |", f"|{'---|' * (len(cases) + 2)}"]
    for name, cells in rows:
        arrived = sum(cell.startswith("ok") for cell in cells)
        named = cells.count("line")
        count = f"{arrived} of {len(cells)}{f', {named} named' if named else ''}"
        lines.append(f"| {name} | {count} | {' | '.join(cells)} |")
    return lines
