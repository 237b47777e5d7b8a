"""What a result must carry, and may not, in each revision."""

import copy

import pytest

from gateway.core.model.revisions import REVISIONS
from gateway.upstream.bridging.finalize_result import CACHED, finalize_result

HANDSHAKE = REVISIONS[:-1]
MODERN = REVISIONS[-1]
SERVER_INFO = {"name": "gateway", "version": "1"}
STAMP = "io.modelcontextprotocol/serverInfo"
STRANGE = {
    "content": [{"type": "video", "data": "AA==", "later": None}],
    "later": {"kept": [1, None]},
    "_meta": {"a/b": 1},
}


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_result_for_a_handshake_revision_is_what_came(revision):
    assert finalize_result("tools/call", STRANGE, revision, server_info=SERVER_INFO) == STRANGE


def test_a_result_for_2026_carries_the_type_and_the_stamp_beside_what_came():
    finished = finalize_result("tools/call", STRANGE, MODERN, server_info=SERVER_INFO)
    assert finished == {**STRANGE, "resultType": "complete", "_meta": {"a/b": 1, STAMP: SERVER_INFO}}


@pytest.mark.parametrize("method", sorted(CACHED))
def test_results_that_may_be_kept_say_for_how_long_and_for_whom(method):
    finished = finalize_result(method, {}, MODERN)
    assert finished == {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def test_the_upstreams_lifetime_is_kept_but_never_its_scope():
    finished = finalize_result("resources/read", {"ttlMs": 500, "cacheScope": "public"}, MODERN)
    assert (finished["ttlMs"], finished["cacheScope"]) == (500, "private")


@pytest.mark.parametrize("key", ["inputResponses", "requestState"])
def test_what_answers_a_retry_is_never_to_be_kept(key):
    params = {"uri": "x", key: None}
    assert finalize_result("resources/read", {"ttlMs": 500}, MODERN, params=params)["ttlMs"] == 0
    assert finalize_result("resources/read", {"ttlMs": 500}, MODERN, params={"uri": "x"})["ttlMs"] == 500


@pytest.mark.parametrize("lifetime", [-1, True, "500", 1.5, None])
def test_a_lifetime_that_is_none_becomes_zero(lifetime):
    assert finalize_result("tools/list", {"ttlMs": lifetime}, MODERN)["ttlMs"] == 0


def test_a_result_that_asks_for_input_is_not_made_complete():
    asking = {"resultType": "input_required", "inputRequests": {}, "requestState": "opaque"}
    assert finalize_result("resources/read", asking, MODERN) == asking


@pytest.mark.parametrize("kind", [None, 3, ["complete"]])
def test_a_result_type_that_is_no_text_is_replaced(kind):
    assert finalize_result("tools/call", {"resultType": kind}, MODERN)["resultType"] == "complete"


def test_the_upstreams_stamp_is_replaced_by_ours_or_taken_off():
    stamped = {"_meta": {STAMP: {"name": "upstream", "version": "9"}, "io.modelcontextprotocol/subscriptionId": 4}}
    assert finalize_result("tools/call", stamped, MODERN, server_info=SERVER_INFO)["_meta"][STAMP] == SERVER_INFO
    assert finalize_result("tools/call", stamped, "2025-11-25") == {}
    other = {"_meta": {**stamped["_meta"], "a/b": 1}}
    assert finalize_result("tools/call", other, "2025-11-25") == {"_meta": {"a/b": 1}}


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("method", ["tools/list", "resources/read", "tools/call"])
def test_fields_of_2026_do_not_reach_older_hosts(method, revision):
    assert finalize_result(
        method, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "x": 1}, revision
    ) == {"x": 1}


@pytest.mark.parametrize("value", [[1, 2], "text", 3, 0, True, []])
def test_structured_content_that_is_no_object_becomes_text_for_older_hosts(value):
    result = {"content": [{"type": "text", "text": "see below"}], "structuredContent": value}
    finished = finalize_result("tools/call", result, "2025-11-25")
    assert "structuredContent" not in finished
    assert [block["type"] for block in finished["content"]] == ["text", "text"]
    assert finalize_result("tools/call", result, MODERN)["structuredContent"] == value


def test_it_is_not_said_twice():
    result = {"content": [{"type": "text", "text": "[1,\n 2]"}], "structuredContent": [1, 2]}
    assert finalize_result("tools/call", result, "2025-11-25") == {"content": result["content"]}


def test_structured_content_that_is_null_is_left_out():
    assert finalize_result("tools/call", {"content": [], "structuredContent": None}, "2025-11-25") == {"content": []}


def test_structured_content_that_is_an_object_stays():
    result = {"content": [], "structuredContent": {"a": [1]}}
    assert finalize_result("tools/call", result, "2025-06-18") == result


def test_odd_content_does_not_stop_it():
    result = {"content": [None, {"text": 3}, {"text": "[" * 100_000}], "structuredContent": [1]}
    assert finalize_result("tools/call", result, "2025-11-25")["content"][-1] == {"type": "text", "text": "[1]"}


def test_output_schemas_that_are_of_no_object_are_left_out_for_older_hosts():
    tools = [
        {"name": "a", "outputSchema": {"type": "array"}},
        {"name": "b", "outputSchema": {"type": "object"}},
        {"name": "c"},
        {"name": "d", "outputSchema": True},
    ]
    kept = [{"name": "a"}, {"name": "b", "outputSchema": {"type": "object"}}, {"name": "c"}, {"name": "d"}]
    assert finalize_result("tools/list", {"tools": tools}, "2025-11-25") == {"tools": kept}
    assert finalize_result("tools/list", {"tools": tools}, MODERN)["tools"] == tools


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "resources/read"])
def test_what_came_is_never_written_to(method, revision):
    result = {
        "_meta": {STAMP: {}, "a/b": 1},
        "resultType": "complete",
        "structuredContent": [1],
        "content": [],
        "tools": [{"name": "a", "outputSchema": {"type": "array"}}],
    }
    before = copy.deepcopy(result)
    finalize_result(method, result, revision, server_info=SERVER_INFO)
    assert result == before
