"""Updating an upstream: what the registry has changed, and what its user has."""

from typing import Any

import pytest

from gateway.core.registry.merge import marks, merge

PORT = marks(["port"])["port"][0]
KEY = marks(["key"])["key"][0]
OLD = {"command": "npx", "args": ["-y", "a@1", "--port", PORT], "env": {"KEY": KEY, "MODE": "a"}, "registry": "n@1"}


def changed(new: dict[str, Any], mine: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    merged = merge(OLD, {**OLD, "registry": "n@2", **new}, {"command": "npx", "registry": "n@1", **mine})
    return {key: merged.upstream.get(key) for key in ("args", "env") if key in merged.upstream}, merged.conflicts


@pytest.mark.parametrize(
    ("new", "mine", "merged"),
    [
        (["-y", "a@2", "--port", PORT], ["-y", "a@1", "--port", "80"], ["-y", "a@2", "--port", "80"]),
        (["-y", "a@2", "--port", PORT], ["-y", "a@1"], ["-y", "a@2"]),
        (["-y", "a@2", "--port", PORT], ["-y", "a@1", "--port", "80", "--own"], ["-y", "a@2", "--port", "80", "--own"]),
        (["-y", "a@2", "--port", PORT], ["-q", "-y", "a@1", "--port", "80"], ["-q", "-y", "a@2", "--port", "80"]),
        (["-y", "a@2", "--listen", PORT], ["-y", "a@1", "--port", "80"], ["-y", "a@2", "--listen", "80"]),
        (["-y", "a@2", "--new", "--port", PORT], ["-y", "a@1", "--port", "80"], ["-y", "a@2", "--new", "--port", "80"]),
        (["-y", "a@2", "--port", PORT, "end"], ["-y", "a@1", "--port", "80"], ["-y", "a@2", "--port", "80", "end"]),
        (["-y", "a@2"], ["-y", "a@1", "--port", "80"], ["-y", "a@2"]),
    ],
    ids=["answer", "left out", "more", "before", "renamed", "new", "end", "gone"],
)
def test_words_that_only_one_side_has_changed_are_taken_from_it(
    new: list[str], mine: list[str], merged: list[str]
) -> None:
    after, conflicts = changed({"args": new}, {"args": mine})
    assert (after["args"], conflicts) == (merged, ())


@pytest.mark.parametrize(
    ("new", "mine"),
    [
        (["-y", "a@2", "--port", PORT], ["-y", "fork@9", "--port", "80"]),
        (["-y", "a@1", "--listen", PORT], ["-y", "a@1", "-p", "80"]),
        (["-y", "a@2", "--port", PORT], []),
        (["-y", f"a@1?{PORT}", "--port", PORT], ["-y", "a@1", "--port", "80"]),
    ],
    ids=["package", "option", "everything", "mark"],
)
def test_what_both_have_changed_stays_as_the_user_has_it(new: list[str], mine: list[str]) -> None:
    after, conflicts = changed({"args": new}, {"args": mine})
    assert (after["args"], conflicts) == (mine, ("args",))


@pytest.mark.parametrize(
    ("new", "mine", "merged", "conflicts"),
    [
        ({"KEY": KEY, "MODE": "b"}, {"KEY": "k", "MODE": "a"}, {"KEY": "k", "MODE": "b"}, ()),
        ({"KEY": KEY, "MODE": "b"}, {"KEY": "k", "MODE": "c"}, {"KEY": "k", "MODE": "c"}, ("env.MODE",)),
        ({"KEY": KEY, "MODE": "b"}, {"KEY": "k", "OWN": "1"}, {"KEY": "k", "OWN": "1"}, ("env.MODE",)),
        ({"MODE": "a"}, {"KEY": "k", "MODE": "a", "OWN": "1"}, {"MODE": "a", "OWN": "1"}, ()),
        ({"KEY": KEY}, {"KEY": "k", "MODE": "a"}, {"KEY": "k"}, ()),
        ({"KEY": KEY, "MODE": "a", "NEW": "n"}, {"KEY": "k", "MODE": "a"}, {"KEY": "k", "MODE": "a", "NEW": "n"}, ()),
        ({"KEY": f"x{KEY}", "MODE": "a"}, {"KEY": "k", "MODE": "a"}, {"KEY": "k", "MODE": "a"}, ("env.KEY",)),
    ],
    ids=["fixed", "both", "taken out", "answer gone", "fixed gone", "new", "form of an answer"],
)
def test_variables_are_compared_one_by_one(
    new: dict[str, str], mine: dict[str, str], merged: dict[str, str], conflicts: tuple[str, ...]
) -> None:
    after, found = changed({"env": new}, {"env": mine, "args": OLD["args"][:2]})
    assert (after["env"], found) == (merged, conflicts)


def test_everything_else_of_the_user_stays() -> None:
    mine = {**OLD, "args": ["-y", "a@1"], "env": {}, "tools": {"exclude": ["x"]}, "cwd": "/w"}
    merged = merge(OLD, {**OLD, "registry": "n@2"}, mine)
    assert merged.upstream == {**mine, "registry": "n@2"}
