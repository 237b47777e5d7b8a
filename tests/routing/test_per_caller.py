"""What is kept in mind for each caller, and the bounds that no caller can use up for the others."""

from collections.abc import Iterator
from typing import Any

from gateway.routing.per_caller import PerCaller


def test_what_is_kept_for_one_caller_is_not_there_for_another() -> None:
    kept: PerCaller[int] = PerCaller()
    kept.put("ann", "a", 1)
    kept.put("bob", "a", 2)
    assert (kept.get("ann", "a"), kept.get("bob", "a"), kept.get("eve", "a")) == (1, 2, None)
    kept.forget("ann")
    assert (kept.get("ann", "a"), kept.get("bob", "a"), len(kept)) == (None, 2, 1)


def test_of_one_caller_the_newest_are_kept() -> None:
    kept: PerCaller[int] = PerCaller(most_of_one=2)
    for key in ("a", "b", "a", "c"):
        kept.put("ann", key, 1)
    assert [key for key in "abc" if kept.get("ann", key)] == ["a", "c"]
    assert len(kept) == 2


def test_a_caller_with_very_much_displaces_its_own() -> None:
    kept: PerCaller[int] = PerCaller(most_of_one=8, most=10)
    for number in range(3):
        kept.put("ann", str(number), number)
    for number in range(100):
        kept.put("eve", str(number), number)
    assert [kept.get("ann", str(number)) for number in range(3)] == [0, 1, 2]
    for number in range(100):
        kept.put(f"eve under the name {number}", "x", number)
    assert len(kept) == 10


def test_looking_for_who_has_the_most_is_not_done_for_every_entry() -> None:
    kept: PerCaller[int] = PerCaller(most=6_400)
    looks = 0

    class Counted(dict[str, Any]):
        def __iter__(self) -> Iterator[str]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    kept._kept = Counted()  # pyright: ignore[reportPrivateUsage]
    for number in range(6_400 + 1_000):
        kept.put(f"caller {number}", "x", number)
    assert 10 <= looks <= 11
    assert kept.get("caller 7399", "x") == 7399
