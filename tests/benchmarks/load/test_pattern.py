"""Hosts arrive as they are said to: the same for the same seed, and on average what the numbers say."""

from collections import Counter
from itertools import islice

import pytest

from benchmarks.calls.wire import RESULTS, Era
from benchmarks.load.pattern import LIST, MIX, Behaviour, era_of


def test_bursts_follow_from_the_seed_and_have_the_mean_that_was_asked_for() -> None:
    behaviour = Behaviour(think=2.0)
    bursts = list(islice(behaviour.bursts(3), 4_000))
    assert bursts == list(islice(behaviour.bursts(3), 4_000))
    assert bursts != list(islice(behaviour.bursts(4), 4_000))
    assert sum(burst.think for burst in bursts) / len(bursts) == pytest.approx(2.0, rel=0.1)
    calls = sum(len(burst.kinds) for burst in bursts)
    assert calls / len(bursts) == pytest.approx(behaviour.calls_a_burst, rel=0.1)
    kinds = Counter(kind for burst in bursts for kind in burst.kinds)
    assert kinds["text"] / calls == pytest.approx(MIX["text"], rel=0.1)
    assert behaviour.calls_a_second == pytest.approx(0.75)


def test_every_kind_is_known_to_the_upstream_and_half_of_the_hosts_are_of_each_era() -> None:
    assert set(MIX) - {LIST} <= set(RESULTS)
    assert sum(MIX.values()) == pytest.approx(1)
    assert Counter(map(era_of, range(100))) == {Era.STATELESS: 50, Era.HANDSHAKE: 50}


@pytest.mark.parametrize("wrong", [{"think": 0}, {"think": 1, "mix": {}}, {"think": 1, "parallel": (0.5,)}])
def test_a_behaviour_without_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="a behaviour needs"):
        Behaviour(**wrong)  # pyright: ignore[reportArgumentType]
