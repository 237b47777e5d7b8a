"""Write the skeleton of a host, and say what to do with it: `make new-host NAME=acme-ide`.

The skeleton claims nothing: its profile holds no value yet, so the host is sent what unknown clients are sent. The
parts that need knowledge of the host are marked, and a test fails as long as a mark is left.
"""

import keyword
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from gateway.config.builtin_profiles import builtin_profiles
from gateway.hosts.simulators.hosts import SIMULATORS

ROOT = Path(__file__).parents[1]
PROFILES = Path("gateway", "hosts", "profiles")
SIMULATOR_FOLDER = Path("gateway", "hosts", "simulators")
MARK = "FILL IN"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")

_PROFILE = Template('''\
title = "$title"
# $mark: the title, as the vendor writes it; and below, what the host does with results, and how far that is known.
about = """
Nothing is known yet of what it shows its model, so it is sent what unknown clients are sent.
"""
# $mark: the name that it gives itself in `initialize`, in lower case, with `-` for blanks, `_` and `/`. `*` stands for
# any text. If others have the same name, delete `match`, and write in `about` that it has to be chosen explicitly.
match = [{ client_name = "$name" }]
# extends = "text-only"     # if images are lost or become base64 text; default: "default"

# $mark: one [[fact]] for each piece of evidence, with the values that it proves; docs/profiles.md has every value.
# If nothing is known, delete all of this: a profile without facts is complete, and the documentation says so.
#
# level: "measured" (its requests to a model API were captured; needs host_version), "source" (its code was read),
# "maintainer" or "user_report" (somebody said so), "judgement" (our choice where nothing can be known), "unverified"
#
# [[fact]]
# level = "source"
# source = "$mark: owner/repository@commit path/to/file.ts:120-140: what it says"
# host_version = "1.2.3"
# checked = $today
# sets.image.show = "native"          # or "line": no image reaches the model
# sets.order = "kept"                 # or "text-first": all text is moved before all images
# sets.structured.host = "ignored"    # or "replaces-all", "replaces-text", "if-empty", "beside", "dumped"
# sets.error.media = "unflag"         # or "keep": images beside an error are shown
''')

_SIMULATOR = Template('''\
"""$title, not measured yet. Anything unknown counts as lost, so that nothing relies on it.

$mark: where this is known from (measured: which version, on which day; or source code, or reports).
"""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.results import blocks, is_error, malformed
from gateway.hosts.simulators.seen import Seen, SeenPart, SeenText, as_labelled, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of $title gets."""
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    # $mark: how structured content, long text, and media beside an error are treated.
    return Seen(tuple(_part(block) for block in blocks(result)), flagged=is_error(result))


def _part(block: Mapping[str, Any]) -> SeenPart:
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "image":  # $mark: whether images are shown, where, and whether they are changed
            return as_labelled(block["data"], block["mimeType"])
        case kind:  # $mark: sound, embedded resources and links
            return SeenText(f"[{kind}: what this host does with it is not known]", "placeholder")


# $mark: what it says about itself in `initialize`.
$constant = SimulatedHost(
    name="$name",
    title="$title",
    client_info={"name": "$name", "version": "1.0.0"},
    revision="2025-06-18",
    see=see,
    shows=RASTER,
)
''')

_NEXT = Template("""\
Next:
  1. Replace what is marked with $mark in both, and delete the marks. Delete the simulator if you know too little of
     the host to write one: a profile needs none.
  2. make docs
     writes its row and its evidence in docs/hosts.
  3. make test ARGS="tests/core/test_golden.py --update-golden"
     writes the outputs that differ from those of the profile that it extends; read them with git diff.
  4. make test ARGS="tests/config tests/docs tests/lab/test_new_host.py tests/core/test_golden.py"
     and, if you kept the simulator: make test ARGS="tests/hosts/simulators"
"Add a host" in CONTRIBUTING.md says more.""")


class SkeletonError(Exception):
    """A skeleton cannot be written under this name; the message says why."""


def write_skeleton(name: str, root: Path = ROOT) -> tuple[Path, Path]:
    """Write a profile and a simulator for a host about which nothing is known yet; return the two paths.

    Raises:
        SkeletonError: a name that no profile can have, or that is taken.
    """
    _check(name)
    module = name.replace("-", "_")
    module += "_" * keyword.iskeyword(module)
    profile, simulator = root / PROFILES / f"{name}.toml", root / SIMULATOR_FOLDER / f"{module}.py"
    for path in (profile, simulator):
        if path.exists():
            raise SkeletonError(f"{path.relative_to(root)} is there already; choose another name")
    values = {
        "mark": MARK,
        "name": name,
        "title": name.replace("-", " ").title(),
        "constant": module.strip("_").upper(),
        "today": datetime.now(tz=UTC).date().isoformat(),
    }
    for path, template in ((profile, _PROFILE), (simulator, _SIMULATOR)):
        path.write_text(template.substitute(values), "utf-8", newline="\n")
    return profile, simulator


def left_marks(root: Path = ROOT) -> Iterator[str]:
    """Every line of a profile or a simulator that still waits for somebody who knows, with its file and number."""
    files = sorted([*(root / PROFILES).glob("*.toml"), *(root / SIMULATOR_FOLDER).glob("*.py")])
    for path in files:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if MARK in line:
                yield f"{path.relative_to(root)}:{number}: {line.strip()}"


def _check(name: str) -> None:
    if not name:
        raise SkeletonError("the host needs a name: make new-host NAME=acme-ide")
    if not _NAME.fullmatch(name):
        proposed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")
        hint = f"; did you mean {proposed!r}?" if _NAME.fullmatch(proposed) else ""
        raise SkeletonError(f"{name!r} is not lower-case letters and digits joined by single hyphens{hint}")
    if name in builtin_profiles():
        raise SkeletonError(f"a profile is called {name!r} already; to change it, edit it")
    if name in SIMULATORS:
        raise SkeletonError(f"a simulated host is called {name!r} already")


def main(arguments: Sequence[str]) -> int:
    """Write the skeleton of the host that is named; returns the exit code."""
    try:
        written = write_skeleton(" ".join(arguments).strip())
    except SkeletonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in written:
        print(f"written: {path.relative_to(ROOT)}")
    print(_NEXT.substitute(mark=MARK))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
