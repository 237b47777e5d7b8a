"""What became of each case in one session of a real host, in which its model called the tools of many cases."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from gateway.hosts.simulators.originals import original_images
from gateway.testing.model_apis import conversation, refusals
from gateway.testing.model_apis.read_request import Conversation
from lab.case_model import called_tool, made
from lab.cases import Case
from lab.judge import Finding, in_short, judged, seen_from

Body = Mapping[str, Any]


def judge_session(api: str, bodies: Iterable[Body], cases: Mapping[str, Case]) -> dict[str, Finding]:
    """The finding of each case whose result reached the model API, in the order of the session.

    A case is judged by the last request that ends in its results. One that the API refuses is refused, whatever the
    host sends then.
    """
    ends = dict(zip(accumulate(len(case.results) for case in cases.values()), cases, strict=True))
    found: dict[str, Finding] = {}
    refused: set[str] = set()
    waiting: str | None = None
    for body in bodies:
        read = conversation(api, body)
        calls = made(read) if read else 0
        name = ends.get(calls) if read else waiting
        if read is not None:
            waiting = next((case for end, case in ends.items() if end > calls), None)
        if name is None or name in refused or (read is not None and not _ends_in_results(read)):
            continue
        original = cases[name].whole
        if reasons := refusals(api, body):
            found[name] = Finding("refused", 0, len(original_images(original)), in_short(reasons[0]))
            refused.add(name)
        elif read is not None:
            found[name] = judged(original, seen_from(api, body, _start(read, calls)))
    return found


def _counts(read: Conversation) -> Sequence[int]:
    return [sum(called_tool(call.name) is not None for call in one.calls) for one in read.messages]


def _start(read: Conversation, calls: int) -> int:
    """The place after the last call."""
    return list(accumulate(_counts(read))).index(calls) + 1


def _ends_in_results(read: Conversation) -> bool:
    return bool(read.messages) and read.messages[-1].role not in ("assistant", "model") and made(read) > 0
