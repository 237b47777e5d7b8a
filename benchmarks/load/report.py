"""What a run has found, as tables in Markdown, and what the models make of it."""

import math
from collections.abc import Sequence
from typing import Final

from benchmarks.calls.report import table
from benchmarks.load.measured import Costs, Stage, percentile
from benchmarks.load.model import (
    GIB,
    Assumptions,
    busiest_second,
    cost_of_million,
    cpu_of_mix,
    fleet,
    waiting_at,
)
from benchmarks.load.pattern import MIX
from benchmarks.load.run import Found

BEGIN: Final = "<!-- load:begin (written by make load) -->\n"
END: Final = "<!-- load:end -->\n"
_UTILISATIONS: Final = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
_QUIET: Final = 0.1
_NAMES: Final = {
    "text": "text of 1 KB",
    "structured": "structured result of 3 KB",
    "image_10k": "image of 10 KB",
    "tools/list": "list of tools",
    "image_1m": "image of 1 MB",
    "photo": "photo of 12 megapixels, scaled",
}


def filled(page: str, text: str) -> str:
    """Return the page with the text in the place of its figures."""
    before, rest = page.split(BEGIN, 1)
    return f"{before}{BEGIN}{text}{END}{rest.split(END, 1)[1]}"


def run_text(found: Found, about: Sequence[str], given: Assumptions | None = None) -> str:
    """Return everything that a run says."""
    others = f"Other programs used {found.others:.0%} of the cores meanwhile"
    others += ": the times of calls are not to be relied on." if found.others > _QUIET else "."
    parts = [
        "\n".join(f"- {line}" for line in (*about, others)),
        "### What one core carries\n\n" + _core(found),
        "### Hosts as they arrive\n\n" + stages_table(found.stages),
        model_text(found.costs, given or Assumptions()),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def stages_table(stages: Sequence[Stage]) -> str:
    """Return a row for each stage: what was offered, what came of it, and what it took."""
    heads = ["load", "offered/s", "served/s", "refused", "failed", "p50", "p95", "p99", "text p99"]
    heads += ["CPU", "media CPU", "memory", "running", "waiting", "media waiting"]
    return table(heads, [_stage(stage) for stage in stages])


def model_text(costs: Costs, given: Assumptions) -> str:
    """Return the models of cost and of a fleet, with their assumptions."""
    return "\n\n".join([_million(costs, given), _waiting(costs), _fleet(costs, given)])


def _stage(stage: Stage) -> list[str]:
    answers, use = stage.answers, stage.use
    every = answers.all()
    cells = [stage.name, f"{stage.offered:.0f}", f"{answers.count / stage.seconds:.0f}", f"{answers.refused:,}"]
    cells += [f"{sum(answers.failed.values()):,}", *(_time(percentile(every, part)) for part in (0.5, 0.95, 0.99))]
    cells.append(_time(percentile(answers.seconds.get("text", []), 0.99)))
    if use is None:
        return cells + ["–"] * 6
    shares = [f"{use.cpu / stage.seconds:.0%}", f"{use.media_cpu / stage.seconds:.0%}", _size(use.peak_bytes)]
    return [*cells, *shares, f"{use.most_running}", f"{use.most_waiting}", f"{use.most_media_waiting}"]


def _core(found: Found) -> str:
    costs = found.costs
    rows = [
        [_NAMES.get(cost.kind, cost.kind), _milli(cost.cpu), _milli(cost.media_cpu), f"{1 / cost.cpu:,.0f}"]
        for cost in costs.kinds
        if cost.cpu > 0
    ]
    own, media = cpu_of_mix(costs, {kind: MIX[kind] for kind in MIX if any(cost.kind == kind for cost in costs.kinds)})
    rows.append(["**the mix below**", f"**{_milli(own)}**", f"**{_milli(media)}**", f"**{1 / own:,.0f}**"])
    heads = ["call", "CPU ms of the gateway", "CPU ms of media workers", "calls per second and core"]
    weights = [
        ["gateway without hosts", _size(costs.idle_bytes)],
        ["a session (revisions up to 2025-11-25)", _size(costs.session_bytes)],
        ["an upstream at a URL, connected, six tools", _size(costs.upstream_bytes)],
    ]
    said = f"With as many calls in flight as above, on this machine: {found.throughput:,.0f} small calls a second."
    return f"{table(heads, rows).rstrip()}\n\n{said}\n\n{table(['memory', 'each'], weights)}"


def _million(costs: Costs, given: Assumptions) -> str:
    found = cost_of_million(costs, given)
    small = cost_of_million(costs, given, {"text": 1.0})
    mix = ", ".join(f"{share:.0%} {_NAMES.get(kind, kind)}" for kind, share in MIX.items())
    return f"""### A million calls

    price = 1e6 x (CPU s + media CPU s) / 3600 x price of a core-hour x peak / utilisation

With {given.vcpu_hour:g} for a core-hour, calls at the busiest time {given.peak_to_average:g} times the average, and \
cores used to {given.utilisation:.0%} then:

| a million calls | CPU hours of gateways | CPU hours of media workers | price |
|---|---|---|---|
| of the mix | {found.cpu_hours:.2f} | {found.media_hours:.2f} | {found.price:.3f} |
| small text | {small.cpu_hours:.2f} | {small.media_hours:.2f} | {small.price:.3f} |

The mix: {mix}. Prices are in the currency of the price of a core-hour. Network traffic and upstreams come on top."""


def _waiting(costs: Costs) -> str:
    rows = [
        [f"{found.utilisation:.0%}", _time(found.median), _time(found.most)]
        for found in (waiting_at(costs, part) for part in _UTILISATIONS)
    ]
    heads = ["core in use", "half of the calls wait less than", "99 of 100 less than"]
    return (
        "### How long calls wait for a core\n\nSimulated from the CPU times above: one core, one call after another, "
        f"bursts of one to four calls that arrive as a Poisson process.\n\n{table(heads, rows)}".rstrip()
    )


def _fleet(costs: Costs, given: Assumptions) -> str:
    found = fleet(costs, given)
    average, most = busiest_second(given)
    rows = [
        ["calls per second", f"{found.calls_a_second:,.0f} (in the worst second of five minutes {most:,.0f})"],
        ["cores busy with gateways, with media workers", f"{found.gateway_cores:.1f}, {found.media_cores:.1f}"],
        ["replicas of one core each", f"{found.replicas}"],
        ["cores for media workers beside them", f"{math.ceil(found.media_cores / given.utilisation)}"],
        ["sessions on each replica", f"{found.sessions_per_replica:,}"],
        ["upstreams that each replica keeps connected", f"{found.upstreams_per_replica:,.0f}"],
        ["memory of each replica", f"{found.bytes_per_replica / GIB:.1f} GiB"],
        ["price of a month", f"{found.price_month:,.0f}"],
    ]
    assert abs(average - found.calls_a_second) < 0.05 * average
    return f"""### {given.upstreams:,} upstreams and {given.hosts:,} hosts

Simulated, not run: {given.hosts:,} hosts open at once, each with a burst of {given.calls_a_burst:g} calls every \
{given.think:g} s on average, {given.stateless:.0%} of them without a session, spread evenly; each reaches \
{given.upstreams_per_host} of {given.upstreams:,} upstreams at URLs, the n-th most popular with the weight 1/n. Costs \
are those measured above, cores are used to {given.utilisation:.0%} at the busiest time, a core-hour costs \
{given.vcpu_hour:g}, a GiB-hour {given.gib_hour:g}, and a month has 730 hours at that size.

{table(["", ""], rows).rstrip()}

Another price, or other hosts: `python -m benchmarks.load.model --hosts 20000 --vcpu-hour 0.03`."""


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1_000:.3g} ms"


def _milli(seconds: float) -> str:
    return f"{seconds * 1_000:.2g}" if seconds < 0.1 else f"{seconds * 1_000:,.0f}"


def _size(size: float) -> str:
    return f"{size / 1024:.0f} KiB" if size < 1024 * 1024 else f"{size / 1024**2:.0f} MiB"
