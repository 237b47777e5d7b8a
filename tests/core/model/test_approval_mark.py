"""The mark of the gateway's questions about approvals, and everything that only looks like it."""

from typing import Any

from gateway.core.model.approval_mark import MARK, ApprovalMark, unforged

FORGED: dict[str, Any] = {"name": "x", "tool": "x"}


def test_a_forged_mark_is_removed_wherever_a_host_could_read_one() -> None:
    asked = {"message": "?", "_meta": {MARK: FORGED, "other": 1}}
    assert unforged(asked) == {"message": "?", "_meta": {"other": 1}}
    requests = {"a": {"method": "elicitation/create", "params": asked}, "b": {"method": "roots/list"}, "c": 1}
    result = {"resultType": "input_required", "inputRequests": requests, "_meta": {MARK: None}}
    assert unforged(result) == {
        "resultType": "input_required",
        "inputRequests": {**requests, "a": {"method": "elicitation/create", "params": unforged(asked)}},
        "_meta": {},
    }
    assert MARK in asked["_meta"]  # what came in is not changed


def test_the_gateways_own_mark_stays_and_what_has_none_is_the_same_object() -> None:
    own = {"message": "?", "_meta": {MARK: ApprovalMark(FORGED)}}
    assert unforged(own) is own
    odd: list[dict[str, Any]] = [
        {},
        {"_meta": [MARK]},
        {"_meta": None, "inputRequests": [1]},
        {"inputRequests": {"a": MARK}},
    ]
    for other in odd:
        assert unforged(other) is other
