"""Which cells of the lab's table are right, and why the others are not: what a host cannot do, or a fault."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.originals import original_images
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.seen import SeenImage, SeenPart
from gateway.hosts.simulators.verdict import READ_AGAIN
from lab.api_notes import ApiNotes
from lab.case_model import PREFIX
from lab.cases import Case, cases
from lab.frameworks import Api, Framework, framework_files, frameworks
from lab.hosts import Host, HostApi, host_files, hosts
from lab.judge import Finding, judged
from lab.lab_table import through

Found = Mapping[str, Mapping[str, Finding]]
"""By setting, by case."""


def explanation(api: ApiNotes, case: str, known: Mapping[str, Case], finding: Finding) -> str | None:
    """Why a cell that is not `seen` is as good as it can be; None if nothing says so.

    A kind of content (`pictures`, `documents`, `audio`) explains that something is named, and `twice` that a text is
    read more than once. What is worse needs a word on the case itself.
    """
    if why := api.cannot.get(case) or api.not_yet.get(case):
        return why
    if finding.word == "lost" and finding.why.startswith(READ_AGAIN):
        return api.cannot.get("twice")
    if finding.word != "named":
        return None
    return next((api.cannot[kind] for kind in _kinds(known[case]) if kind in api.cannot), None)


def notes_of(name: str, kind: Literal["host", "framework"]) -> Mapping[str, ApiNotes]:
    """What the file of a host or framework says of it, by model API; empty if it has none."""
    known: Sequence[Host | Framework] = ()
    if kind == "framework":
        known = frameworks(name) if name in framework_files() else ()
    elif name in host_files():
        known = hosts(name)
    return {api.name: api for one in known for api in one.apis}


def explained(notes: ApiNotes | None, case: str, finding: Finding) -> str:
    """The explanation of a cell that is not `seen`, as text; empty if it is seen, or nothing explains it."""
    if finding.word == "seen" or notes is None or case not in cases():
        return ""
    return explanation(notes, case, cases(), finding) or ""


def _kinds(case: Case) -> Iterator[str]:
    blocks: list[dict[str, Any]] = case.whole.get("content") or []
    if original_images(case.whole):
        yield "pictures"
    if any(block["type"] == "audio" for block in blocks):
        yield "audio"
    if any("blob" in block.get("resource", {}) for block in blocks):
        yield "documents"


def faults(host: Host | Framework, api: HostApi | Api, found: Found, known: Mapping[str, Case]) -> list[str]:
    """What is wrong with the gateway, or with what this project says of a host: one line each."""
    return [*_not_right(host, api, through(found), known), *_simulator(host, api, found, known)]


def _not_right(
    host: Host | Framework, api: HostApi | Api, found: Mapping[str, Finding], known: Mapping[str, Case]
) -> Iterator[str]:
    for case, finding in found.items():
        if finding.word != "seen" and explanation(api, case, known, finding) is None:
            why = f" ({finding.why})" if finding.why else ""
            where = f"{host.name}, {api.name}, through the gateway"
            yield f"{where}: {case} is {finding.word}{why}, and nothing explains it"


def _simulator(host: Host | Framework, api: HostApi | Api, found: Found, known: Mapping[str, Case]) -> Iterator[str]:
    if api.simulator is None:
        return
    for case, finding in found.get("alone", {}).items():
        said = simulated(api.simulator, known[case])
        # What an API refuses, and a case of several results, are beyond a simulator.
        if finding.word in ("refused", "failed") or said is None or case in api.differs:
            continue
        if (said.word, said.shown) != (finding.word, finding.shown):
            yield (
                f"the simulator of {host.title} says that {case} is {_words(said)}; "
                f"{host.title} on {api.name}: {_words(finding)}"
            )


def simulated(simulator: str, case: Case) -> Finding | None:
    """What becomes of a case in a simulated host; None if it has several results."""
    if len(case.results) != 1:
        return None
    ((name, result),) = case.results.items()
    tool: dict[str, Any] = {"name": PREFIX + name, "inputSchema": {"type": "object", "properties": {}}}
    seen = SIMULATORS[simulator].see(result, tool)
    return judged(result, replace(seen, parts=tuple(map(_as_taken, seen.parts))))


def _as_taken(part: SeenPart) -> SeenPart:
    """A picture with the type of its bytes: whether an API minds what it is labelled is not for a simulator to say."""
    if isinstance(part, SeenImage) and (picture := look(part.data)):
        return replace(part, media_type=picture.media_type)
    return part


def _words(finding: Finding) -> str:
    pictures = f", {finding.shown} of {finding.images} pictures" if finding.images else ""
    return f"{finding.word}{pictures}{f' ({finding.why})' if finding.why else ''}"
