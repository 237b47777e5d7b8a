import random

from gateway.upstream.connection.backoff import LONGEST, SHORTEST, Backoff


def test_delays_grow_up_to_a_cap_and_begin_again_after_a_reset() -> None:
    backoff = Backoff(random.Random(1))
    delays = [backoff.delay() for _ in range(12)]
    assert SHORTEST / 2 <= delays[0] <= SHORTEST
    assert all(LONGEST / 2 <= delay <= LONGEST for delay in delays[-4:])
    backoff.reset()
    assert backoff.delay() <= SHORTEST


def test_two_upstreams_do_not_march_in_step() -> None:
    first, second = Backoff(random.Random(1)), Backoff(random.Random(2))
    assert [first.delay() for _ in range(4)] != [second.delay() for _ in range(4)]
