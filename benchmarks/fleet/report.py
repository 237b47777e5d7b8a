"""What a run of the fleet has found, as tables in Markdown."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from benchmarks.calls.report import table
from benchmarks.fleet.ledger import Call, recovered_after
from benchmarks.fleet.run import Found, Options, Phase
from benchmarks.load.measured import percentile

BEGIN: Final = "<!-- fleet:begin (written by make fleet) -->\n"
END: Final = "<!-- fleet:end -->\n"
_SMALL: Final = frozenset({"echo", "picture", "count"})
_REASONS: Final = (
    ("its replica was gone, and nobody knows whether it was carried out", "nobody knows whether it was carried out"),
    ("its state in an upstream was gone with a replica", "its state is lost"),
    ("Redis could not be asked where its state in an upstream is", "which of them holds its state"),
    ("the replica that ran the long call was gone", "the replica of the gateway that ran the call"),
    ("the call that waited for an answer was gone with its replica", "no longer waiting"),
    ("refused until the host gave up", "refused again and again"),
)
"""Reasons that calls failed for, and words by which they are known."""


def filled(page: str, text: str) -> str:
    """Return the page with the text in the place of its figures."""
    before, rest = page.split(BEGIN, 1)
    return f"{before}{BEGIN}{text}{END}{rest.split(END, 1)[1]}"


def run_text(found: Found, options: Options, about: str) -> str:
    """Return everything that a run says."""
    revisions = Counter(call.revision for call in found.ledger.calls)
    said = ", ".join(f"{revision} ({count:,})" for revision, count in sorted(revisions.items()))
    parts = [
        f"{about} {options.hosts} hosts of eight principals made {len(found.ledger.calls):,} calls; by revision: "
        f"{said}.",
        phases_table(found).rstrip(),
        _reasons(found.ledger.calls),
        _promises(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def phases_table(found: Found) -> str:
    """Return a row for each phase: what became of the calls, and how soon they went as before."""
    heads = ["what happened", "calls", "ok", "of them asked again", "failed, told why", "cut off", "lost"]
    heads += ["without a handle", "p50", "p95", "p99", "last trouble after"]
    return table(heads, [_row(found, number, phase) for number, phase in enumerate(found.phases)])


def _row(found: Found, number: int, phase: Phase) -> list[str]:
    calls = found.ledger.of_phase(number)
    counts = Counter(call.outcome for call in calls)
    good = [call for call in calls if call.outcome == "ok"]
    times = [call.ended - call.began for call in good if call.kind in _SMALL]
    return [
        phase.name,
        f"{len(calls):,}",
        f"{counts['ok']:,}",
        f"{sum(bool(call.retried) for call in good):,}",
        f"{counts['told why']:,}",
        f"{counts['cut off']:,}",
        f"{counts['lost']:,}",
        f"{found.ledger.not_kept[number]:,}",
        *(_time(percentile(times, part)) for part in (0.5, 0.95, 0.99)),
        _time(recovered_after(calls, phase.fault)),
    ]


def _reasons(calls: Sequence[Call]) -> str:
    counts = Counter(_reason(call) for call in calls if call.outcome in ("told why", "cut off"))
    if not counts:
        return ""
    rows = [[reason, f"{count:,}"] for reason, count in counts.most_common()]
    return table(["why calls failed", "calls"], rows).rstrip()


def _reason(call: Call) -> str:
    if call.outcome == "cut off":
        return f"the connection broke within the answer, and {call.revision} cannot resume it"
    return next((said for said, words in _REASONS if words in call.reason), call.reason[:200].replace("|", "/"))


def _promises(found: Found) -> str:
    broken = found.ledger.broken_promises()
    said = (
        f"Of {len(found.ledger.promises):,} handles, {found.read:,} were read at the end by their owners, and asked "
        f"for by another principal. Hosts opened {sum(found.ledger.reopened.values()):,} sessions again. Lost: "
        f"{sum(one.startswith('lost') for one in broken)}. Seen by somebody else: {len(found.ledger.foreign)}."
    )
    return "\n".join([said, *(f"- {one[:300]}" for one in broken[:20])])


def _time(seconds: float) -> str:
    if seconds != seconds or seconds == 0:
        return "–"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1_000:.3g} ms"
