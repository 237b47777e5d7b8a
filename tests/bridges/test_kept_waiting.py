"""A host that gives a call up when it hears nothing of it is kept waiting: progress is told in the upstream's name."""

from itertools import pairwise

import pytest

IMPATIENT = """
[profiles.impatient]
extends = "passthrough"
sets = { "wait.progress_every" = 0.1 }
"""


@pytest.mark.parametrize("upstream_kind", ["handshake-stdio", "modern-http"])
@pytest.mark.parametrize("host_kind", ["handshake-http", "handshake-sse", "modern-http"])
def test_progress_is_told_as_long_as_the_upstream_works(fresh, host_kind, upstream_kind):
    config = fresh.config({"bridge": fresh.upstream(upstream_kind)})
    config.write_text(config.read_text("utf-8") + IMPATIENT, "utf-8")
    host = fresh.host(host_kind, fresh.gateway(config, profile="impatient"))
    call = host.begin("slow", tag="kept", seconds=1.0)
    assert call.wait()["content"][0]["text"] == "slept"
    told = call.progress
    assert len(told) >= 3  # the upstream itself tells one
    assert all(one["progress"] < other["progress"] < 0.01 for one, other in pairwise(told))
    assert (told[-1]["total"], told[-1]["message"]) == (1, "started")
