"""Equal calls of read-only tools are answered from the cache, whatever era the host and the upstream speak."""

import pytest

from tests.bridges import hosts

CACHED = {"tools": {"cache": ["con*", "counter"]}}
KEY = "mcp-gateway/cache"


@pytest.mark.parametrize(
    ("host_kind", "upstream_kind"), [("handshake-http", "modern-http"), ("modern-http", "handshake-stdio")]
)
def test_an_equal_call_is_answered_from_the_cache(fresh, host_kind, upstream_kind):
    config = fresh.config({"bridge": fresh.upstream(upstream_kind) | CACHED})
    where = fresh.gateway(config)
    host, other = fresh.host(host_kind, where, name="one"), fresh.host(host_kind, where, name="other")
    for each in (host, other):  # what opening its connection announces forgets the results
        each.call("counter")
    first = host.call("content")
    again, others = host.call("content"), other.call("content")
    assert KEY not in first["_meta"]
    assert again["_meta"].pop(KEY)["ageMs"] >= 0
    assert others["_meta"].pop(KEY)
    assert again == others == first
    assert KEY not in host.call("content", kind="text").get("_meta", {})
    counted = [host.call("counter")["structuredContent"]["count"] for _ in range(2)]
    assert counted[1] == counted[0] + 1  # it does not declare readOnlyHint, and so it forgets
    assert KEY not in host.call("content")["_meta"]


def test_an_error_is_not_kept(fresh):
    config = fresh.config({"bridge": fresh.upstream("handshake-http") | CACHED})
    host = fresh.host("handshake-http", fresh.gateway(config))
    for _ in range(2):
        with pytest.raises(hosts.Refused, match="no ☃"):
            host.call("fail", code=-32050)
