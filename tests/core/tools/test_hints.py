import pytest

from gateway.core.tools.catalogue.hints import NO_HINT, lifetime, merge_hints, of_pages


def test_a_list_in_pages_may_be_kept_as_long_as_the_shortest_of_them():
    pages = [{"ttlMs": 90, "_meta": {"a": 1, "b": 1}}, {"ttlMs": 50, "_meta": {"a": 2}}, {"ttlMs": 70}]
    assert of_pages(pages) == {"ttlMs": 50, "_meta": {"a": 2, "b": 1}}


@pytest.mark.parametrize("wrong", [None, -1, True, "5", 1.5])
def test_one_page_without_a_sane_lifetime_leaves_the_list_without_one(wrong: object):
    assert lifetime(wrong) is None
    assert of_pages([{"ttlMs": 9}, {"ttlMs": wrong, "_meta": []}]) == NO_HINT
    assert of_pages([]) == NO_HINT


def test_of_several_upstreams_the_least_lifetime_and_the_first_value_of_each_key_count():
    hints = [{"ttlMs": 9, "_meta": {"a": 1}}, {"ttlMs": 5, "_meta": {"a": 2, "b": 3}}]
    assert merge_hints(hints) == {"ttlMs": 5, "_meta": {"a": 1, "b": 3}}
    assert merge_hints([*hints, NO_HINT]) == {"_meta": {"a": 1, "b": 3}}
    assert merge_hints([{"ttlMs": 0, "_meta": {}}]) == merge_hints([]) == {}


def test_keys_of_the_protocol_itself_belong_to_one_hop():
    reserved = ("io.modelcontextprotocol/serverInfo", "dev.mcp/x", "org.modelcontextprotocol.api/y")
    ours = ("com.example.mcp/x", "mcp/x", "plain", "io.modelcontextprotocolish/x")
    assert merge_hints([{"_meta": dict.fromkeys([*reserved, *ours], 1)}]) == {"_meta": dict.fromkeys(ours, 1)}
