"""Which session makes way: plain values, each a letter for its principal and a name for its use."""

import pytest

from gateway.upstream.connection.displacement import Seat, SeatUse, seat_to_give_up

USES = {"u": SeatUse.UNUSED, "a": SeatUse.ATTENDED, "s": SeatUse.SUSPENDED, "b": SeatUse.BUSY}


def seats(words: str) -> dict[str, Seat]:
    """Sessions such as `Au1`: the principal (`-`: nobody), the use, and the client; used one after the other.

    The keys are the words, with an apostrophe for each that was there before.
    """
    found: dict[str, Seat] = {}
    for age, word in enumerate(words.split()):
        principal = None if word[0] == "-" else word[0]
        key = word
        while key in found:
            key += "'"
        found[key] = Seat(principal, principal and f"{principal}{word[2:]}", USES[word[1]], float(age))
    return found


@pytest.mark.parametrize(
    ("there", "goes"),
    [
        ("Bu1 Bu2 -u", "-u"),  # nobody's
        ("Ab1 -b Ab2", None),
        # All of one principal: its own client's, then the one unused for longest.
        ("Au1 Au2 Au3", "Au1"),
        ("Au2 Ab1 Au3 Au1", "Au1"),
        ("Aa2 As3 Ab1", None),
        # Its own, where others have no more.
        ("Bu1 Au2", "Au2"),
        ("Bu1 Bu2 Au3 Au4", "Au3"),
        ("Bu1 Ab2", None),
        ("Bu1 Aa2 As3", None),
        # Of whoever has the most, and there of the client with the most.
        ("Au2 Bu1 Bu2 Bu3", "Bu1"),
        ("Bu1 Bu2 Bu2 Bu3", "Bu2"),
        ("Cu1 Cu2 Bu1 Bu2 Bu3", "Bu1"),
        # Where each has one, the one unused for longest: it is not kept for ever.
        ("Bu1", "Bu1"),
        ("Bu1 Cu1", "Bu1"),
        ("Ba1 Cu1", "Cu1"),
        ("Ba1", None),
        ("Bs1 Cs1", None),
        # In use, but more than its share, and more than the other has even afterwards.
        ("Ba1 Ba2", "Ba1"),
        ("Bs1 Ba2", "Ba2"),
        ("Bb1 Bs2", "Bs2"),
        ("Bb1 Bb2", None),
        ("Aa1 Ba1 Ba2", None),
        ("Aa1 Ba1 Ba2 Ba3", "Ba1"),
        # A third one has no part in what the first has too much of.
        ("Cu1 Ba1 Ba2 Ba3", "Ba1"),
        ("Cu1 Cu2 Cu3 Cu4 Ba1 Ba2", "Cu1"),
        ("Cu1 Bb1 Bb2 Bb3", "Cu1"),
    ],
)
def test_what_makes_way_for_another_session_of_client_1_of_principal_a(there: str, goes: str | None) -> None:
    assert seat_to_give_up(seats(there), "A", "A1") == goes


def test_nobody_ever_loses_one_to_somebody_with_more() -> None:
    kinds = ("Au1", "Bu1", "Ba1", "Cs1", "Au2")
    for number in range(5**5):
        words = [kinds[number // 5**place % 5] for place in range(5)]
        there = seats(" ".join(words))
        goes = seat_to_give_up(there, "A", "A1")
        if goes is not None and goes[0] != "A":
            held = [word[0] for word in words]
            assert held.count(goes[0]) > held.count("A"), words
