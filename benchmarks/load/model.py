"""Cost and size of a fleet, computed from measured costs and stated assumptions: nothing here measures anything.

python -m benchmarks.load.model            prints it all, from the costs in docs/scaling.json
python -m benchmarks.load.model --vcpu-hour 0.03 --gib-hour 0.004 --hosts 50000
"""

import argparse
import json
import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.load.measured import Costs, percentile
from benchmarks.load.pattern import MIX

COSTS: Final = Path(__file__).resolve().parents[2] / "docs" / "scaling.json"
GIB: Final = 1024**3
MILLION: Final = 1_000_000
MOST_SESSIONS: Final = 10_000
"""Sessions of one gateway; at the limit, the one that was unused for longest is ended."""


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of prices, hosts and upstreams."""

    vcpu_hour: float = 0.04
    """Price of a core for an hour."""
    gib_hour: float = 0.005
    """Price of a GiB of memory for an hour."""
    utilisation: float = 0.6
    """The part of a core that is used at the peak; the rest is for bursts, and for replicas that are gone."""
    peak_to_average: float = 3.0
    """Calls per second at the busiest time of a day, by the average."""
    hosts: int = 100_000
    """Hosts that are open at the busiest time."""
    upstreams: int = 10_000
    """Upstreams at URLs that the fleet has in its configuration."""
    upstreams_per_host: int = 8
    """Upstreams that each host may reach; popular ones more often (Zipf)."""
    think: float = 60.0
    """Seconds between the bursts of a host."""
    calls_a_burst: float = 1.5
    """Calls at once."""
    stateless: float = 0.5
    """The part of the hosts without sessions."""
    seed: int = 7


class Million(NamedTuple):
    """What a million calls cost: CPU hours of gateways and of media workers, and their price at full use of a core."""

    cpu_hours: float
    media_hours: float
    price: float


class Waiting(NamedTuple):
    """How long calls wait for a core at a utilisation: seconds."""

    utilisation: float
    median: float
    most: float
    """For 99 of 100 calls."""


class Fleet(NamedTuple):
    """What the hosts of the assumptions need at the busiest time."""

    calls_a_second: float
    gateway_cores: float
    media_cores: float
    replicas: int
    sessions_per_replica: int
    upstreams_per_replica: float
    bytes_per_replica: float
    price_month: float


def cpu_of_mix(costs: Costs, mix: Mapping[str, float] = MIX) -> tuple[float, float]:
    """Return the average CPU seconds of a call of this mix: of the gateway's process, and of media workers."""
    total = sum(mix.values())
    own = sum(share * costs.of(kind).cpu for kind, share in mix.items()) / total
    return own, sum(share * costs.of(kind).media_cpu for kind, share in mix.items()) / total


def cost_of_million(costs: Costs, given: Assumptions, mix: Mapping[str, float] = MIX) -> Million:
    """Return what a million calls cost: CPU seconds by price, divided by the average use of what is paid for.

    price = 1e6 x (cpu + media cpu) / 3600 x vcpu_hour x peak_to_average / utilisation
    """
    own, media = cpu_of_mix(costs, mix)
    hours, media_hours = MILLION * own / 3_600, MILLION * media / 3_600
    paid = (hours + media_hours) * given.peak_to_average / given.utilisation
    return Million(hours, media_hours, paid * given.vcpu_hour)


def waiting_at(costs: Costs, utilisation: float, *, calls: int = 100_000, seed: int = 7) -> Waiting:
    """Simulate one core that works on one call after another, and return how long calls wait for it.

    Bursts arrive as a Poisson process; each has one to four calls of the mix.
    """
    drawn = random.Random(seed)  # noqa: S311 - no secret
    kinds, weights = list(MIX), list(MIX.values())
    seconds = {kind: costs.of(kind).cpu for kind in kinds}
    own, _ = cpu_of_mix(costs)
    sizes, shares = (1, 2, 3, 4), (0.70, 0.15, 0.10, 0.05)
    between = own * sum(size * share for size, share in zip(sizes, shares, strict=True)) / utilisation
    now, free, waits = 0.0, 0.0, list[float]()
    while len(waits) < calls:
        now += drawn.expovariate(1 / between)
        for kind in drawn.choices(kinds, weights, k=drawn.choices(sizes, shares)[0]):
            waits.append(max(0.0, free - now))
            free = max(free, now) + seconds[kind]
    return Waiting(utilisation, percentile(waits, 0.5), percentile(waits, 0.99))


def fleet(costs: Costs, given: Assumptions) -> Fleet:
    """Size a fleet for its busiest time. Each replica has a core for the gateway; media workers are counted beside."""
    own, media = cpu_of_mix(costs)
    rate = given.hosts * given.calls_a_burst / given.think
    cores, media_cores = rate * own, rate * media
    with_session = given.hosts * (1 - given.stateless)
    replicas = max(2, math.ceil(cores / given.utilisation), math.ceil(with_session / MOST_SESSIONS))
    sessions = math.ceil(with_session / replicas)
    reached = upstreams_reached(given, replicas)
    memory = costs.idle_bytes + sessions * costs.session_bytes + reached * costs.upstream_bytes
    whole_cores = replicas + math.ceil(media_cores / given.utilisation)
    hour = whole_cores * given.vcpu_hour + replicas * memory / GIB * given.gib_hour
    return Fleet(rate, cores, media_cores, replicas, sessions, reached, memory, hour * 730)


def upstreams_reached(given: Assumptions, replicas: int) -> float:
    """Simulate which upstreams the hosts of one replica reach, and return how many it has to keep connected.

    Hosts are spread evenly. A host picks its upstreams by popularity: the n-th has the weight 1/n.
    """
    drawn = random.Random(given.seed)  # noqa: S311 - no secret
    names = range(given.upstreams)
    weights = [1 / (rank + 1) for rank in names]
    total, running = 0.0, list[float]()
    for weight in weights:
        total += weight
        running.append(total)
    hosts = given.hosts // replicas
    reached = set[int]()
    for _ in range(hosts):
        reached.update(drawn.choices(names, cum_weights=running, k=given.upstreams_per_host))
    return len(reached)


def busiest_second(given: Assumptions, *, seconds: int = 300) -> tuple[float, float]:
    """Simulate the bursts of all hosts for some minutes; return the calls per second on average, and at the most.

    Each host thinks for exponential times, so the bursts of all of them are one Poisson process.
    """
    drawn = random.Random(given.seed)  # noqa: S311 - no secret
    counts = [0] * seconds
    now, rate = 0.0, given.hosts / given.think
    more = (given.calls_a_burst - 1) / given.calls_a_burst  # of another call in the same burst, geometric
    while (now := now + drawn.expovariate(rate)) < seconds:
        calls = 1
        while drawn.random() < more:
            calls += 1
        counts[int(now)] += calls
    return sum(counts) / seconds, max(counts)


def main() -> int:
    """Print the models for the costs of the page, and for the assumptions of the command line."""
    from benchmarks.load.report import model_text

    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.model", description="Cost and size of a fleet.")
    parser.add_argument("--costs", type=Path, default=COSTS, help="measured costs (docs/scaling.json)")
    usuals: dict[str, float] = asdict(Assumptions())
    for name, usual in usuals.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(usual), default=usual, help=f"{usual}")
    options = vars(parser.parse_args())
    costs = Costs.from_json(json.loads(options.pop("costs").read_text("utf-8")))
    print(model_text(costs, replace(Assumptions(), **options)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
