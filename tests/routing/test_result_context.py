"""What shaping one result may reach: its own upstream's resources, and the folders that its host tells."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import FeatureRules, Profile
from gateway.errors import HostRefused, InvalidRequest
from gateway.routing.result_context import reach
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.connection.request_context import RequestContext
from tests.routing.conftest import FakeUpstream

pytestmark = pytest.mark.anyio
PROFILE = Profile(name="host")
ROOTED = Caller(revision="2025-11-25", capabilities={"roots": {}})


class AHost:
    """A host that answers roots/list."""

    party = "one"
    connection = None
    bounds_waiting = False

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(method)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        raise AssertionError("nothing is told")

    async def let_go(self) -> None:
        raise AssertionError("nothing is let go")


def known(upstreams: Any) -> Any:
    """A dict does as the port of all upstreams, but for who is attending."""
    return upstreams


async def test_a_link_is_read_from_the_upstream_that_gave_it_for_the_caller() -> None:
    upstream = FakeUpstream("docs", answer=lambda method, params: {"contents": [{"uri": params["uri"]}]})
    read = reach(Bridge(), known({"docs": upstream}), "docs", RequestContext(ROOTED, PROFILE)).read
    assert read is not None
    assert await read("doc://a") == {"contents": [{"uri": "doc://a"}]}
    assert [(method, params) for method, params, _ in upstream.asked] == [("resources/read", {"uri": "doc://a"})]
    assert upstream.asked_for == [(ROOTED, None)]


async def test_a_result_of_our_own_has_no_links_to_read() -> None:
    assert reach(Bridge(), known({}), None, RequestContext(ROOTED, PROFILE)).read is None


async def test_a_tool_that_describes_is_called_for_the_caller() -> None:
    upstream = FakeUpstream("eyes")
    tools = reach(Bridge(), known({"eyes": upstream}), None, RequestContext(ROOTED, PROFILE)).tools
    assert tools is not None
    await tools.call("eyes", "look", {"a": 1})
    assert upstream.asked[0][:2] == ("tools/call", {"name": "look", "arguments": {"a": 1}})
    assert upstream.asked_for == [(ROOTED, None)]
    with pytest.raises(InvalidRequest, match="no upstream 'ears'"):
        await tools.call("ears", "hear", {})


@pytest.mark.parametrize(
    ("answer", "folders"),
    [
        ({"roots": [{"uri": "file:///a"}, {"name": "no uri"}, 7, {"uri": "file:///b"}]}, ("file:///a", "file:///b")),
        ({"roots": "none"}, ()),
        ({}, ()),
        (HostRefused(-32601, "no such method"), ()),
    ],
)
async def test_the_folders_are_the_roots_that_the_host_tells(answer: Any, folders: tuple[str, ...]) -> None:
    host = AHost(answer)
    assert (
        tuple(await reach(Bridge(), known({}), None, RequestContext(ROOTED, PROFILE, host=host)).folders()) == folders
    )
    assert host.asked == ["roots/list"]


@pytest.mark.parametrize(
    ("caller", "profile"),
    [
        (Caller(revision="2025-11-25"), PROFILE),
        (Caller(revision="2026-07-28", capabilities={"roots": {}}), PROFILE),
        (ROOTED, Profile(name="broken", features=FeatureRules(broken=("roots",)))),
    ],
)
async def test_a_host_that_cannot_tell_its_roots_is_not_asked(caller: Caller, profile: Profile) -> None:
    host = AHost({"roots": [{"uri": "file:///a"}]})
    assert tuple(await reach(Bridge(), known({}), None, RequestContext(caller, profile, host=host)).folders()) == ()
    assert host.asked == []
