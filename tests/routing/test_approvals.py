"""A call that needs an approval is made when its user has approved it, and not before: in the host, in a terminal, or
by a tool that the host shows.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest

from gateway.config.policy_settings import PolicySettings
from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import FeatureRules, Match, Profile
from gateway.errors import HostRefused, InvalidRequest, NotAllowed
from gateway.routing import Router
from gateway.routing.approvals import MOST_OF_ONE, Approvals, CallToApprove
from gateway.upstream.bridging.bridge import open_bridge

pytestmark = pytest.mark.anyio

HOST = Caller(revision="2025-11-25", client_name="codex", session="s", capabilities={"elicitation": {}})
SILENT = replace(HOST, capabilities={})
MODERN = replace(HOST, revision="2026-07-28", session=None)
ARGUMENTS = {"path": "/tmp/x"}

MakeRouter = Callable[..., Router]


@dataclass
class FakeHost:
    """A host that answers each question as a test says; it may wait for ever."""

    answer: Mapping[str, Any] | None = None
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    party: str = "s"
    connection: Any = None
    bounds_waiting: bool = False

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method, params))
        if self.answer is None:
            raise HostRefused(-32601, "no")
        return dict(self.answer)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...

    async def let_go(self) -> None: ...


YES = {"action": "accept", "content": {"decision": "allow"}}


def policy(approval: str = "ask") -> PolicySettings:
    rule = {"name": "careful", "effect": "approve", "destructive": True, "reason": "It may destroy."}
    return PolicySettings.model_validate({"approval": approval, "rules": [rule]})


@pytest.fixture
def files(fake_upstream: Any) -> Any:
    tools = [{"name": "delete", "inputSchema": {"type": "object"}}]
    return fake_upstream("files", [*tools, {**tools[0], "name": "look", "annotations": {"readOnlyHint": True}}])


async def delete(
    served: Router, caller: Caller = HOST, host: FakeHost | None = None, name: str = "files__delete", **more: Any
) -> Any:
    params = {"name": name, "arguments": ARGUMENTS, **more}
    return await served.respond("tools/call", params, caller, host=host)


async def refused(served: Router, caller: Caller = HOST, host: FakeHost | None = None) -> str:
    with pytest.raises(NotAllowed) as caught:
        await delete(served, caller, host)
    assert caught.value.rule == "careful"
    return str(caught.value)


async def test_the_host_asks_its_user_with_everything_there_is_to_know(router: MakeRouter, files: Any) -> None:
    served, host = router(files, policy=policy()), FakeHost(YES)
    await delete(served, host=host)
    ((method, params),) = host.asked
    assert method == "elicitation/create"
    assert all(words in params["message"] for words in ("delete", "files", "/tmp/x", "careful", "It may destroy."))
    assert len(files.asked) == 1
    await delete(served, host=host, name="files__look")
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"decision": "do not allow"}},
        {"action": "accept", "content": {"decision": True}},
        {"action": "accept", "content": ["allow"]},
    ],
    ids=str,
)
async def test_only_a_clear_yes_is_one(router: MakeRouter, files: Any, answer: Any) -> None:
    served = router(files, policy=policy())
    assert "the user declined it" in await refused(served, host=FakeHost(answer))
    assert files.asked == []


@pytest.mark.parametrize("answer", [None, {"action": "cancel"}, {}, {"action": 1}], ids=str)
async def test_a_host_that_does_not_show_the_question_leaves_it_to_the_terminal(
    router: MakeRouter, files: Any, answer: Any
) -> None:
    served = router(files, policy=policy())
    words = await refused(served, host=FakeHost(answer))
    (waiting,) = served.approvals.listed()
    assert f"mcp-gateway approvals approve {waiting.id}" in words
    assert files.asked == []


async def test_a_host_whose_profile_says_that_it_shows_no_questions_is_not_asked(
    router: MakeRouter, files: Any, profiles: dict[str, Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = Profile(name="blind", match=(Match(client_name="blind"),), features=FeatureRules(broken=("elicitation",)))
    monkeypatch.setitem(profiles, "blind", blind)
    host = FakeHost(YES)
    await refused(router(files, policy=policy()), replace(HOST, client_name="blind"), host)
    assert host.asked == []


async def test_with_terminal_no_host_is_asked(router: MakeRouter, files: Any) -> None:
    host = FakeHost(YES)
    await refused(router(files, policy=policy("terminal")), host=host)
    assert host.asked == []


async def test_an_approval_is_for_one_call_of_one_host_with_its_arguments(router: MakeRouter, files: Any) -> None:
    served = router(files, policy=policy())
    await refused(served, SILENT)
    await refused(served, SILENT)
    (waiting,) = served.approvals.listed()
    served.approvals.settle(waiting.id, "approved")
    await refused(served, replace(SILENT, session="another"))
    await refused(served, replace(SILENT, session="another", principal="mallory"))
    with pytest.raises(NotAllowed):
        await served.respond("tools/call", {"name": "files__delete", "arguments": {"path": "/"}}, SILENT)
    assert files.asked == []
    await delete(served, SILENT)
    assert len(files.asked) == 1
    await refused(served, SILENT)


async def test_a_call_that_was_denied_is_told_so_once(router: MakeRouter, files: Any) -> None:
    served = router(files, policy=policy())
    await refused(served, SILENT)
    served.approvals.settle(served.approvals.listed()[0].id, "denied")
    assert "declined" in await refused(served, SILENT)
    assert "approvals approve" in await refused(served, SILENT)


async def test_a_model_approves_only_with_the_two_step_tool_and_only_what_it_repeats(
    router: MakeRouter, files: Any
) -> None:
    served = router(files, policy=policy("two-step"))
    listed = await served.respond("tools/list", {}, SILENT)
    assert [tool["name"] for tool in listed["tools"]] == ["gateway_approve", "files__delete", "files__look"]
    words = await refused(served, SILENT)
    found = re.search(r'gateway_approve with id "(\w+)"', words)
    assert found

    async def approve(caller: Caller = SILENT, **changed: Any) -> Any:
        given = {"id": found[1], "tool": "files__delete", "arguments": ARGUMENTS, **changed}
        return await served.respond("tools/call", {"name": "gateway_approve", "arguments": given}, caller)

    assert (await approve(arguments={"path": "/"}))["isError"]
    assert (await approve(tool="files__look"))["isError"]
    assert (await approve(id="other"))["isError"]
    assert (await approve(id=["x"]))["isError"]
    assert (await approve(replace(SILENT, principal="mallory", session="m")))["isError"]
    await refused(served, SILENT)
    assert not (await approve())["isError"]
    await delete(served, SILENT)
    await refused(served, SILENT)


async def test_a_model_cannot_overrule_its_user_with_the_two_step_tool(router: MakeRouter, files: Any) -> None:
    served = router(files, policy=policy("two-step"))
    await served.respond("tools/list", {}, SILENT)
    assert "gateway_approve" not in str(await served.respond("tools/list", {}, HOST))
    words = await refused(served, host=FakeHost({"action": "cancel"}))
    (waiting,) = served.approvals.listed()
    assert f"mcp-gateway approvals approve {waiting.id}" in words
    given = {"id": waiting.id, "tool": "files__delete", "arguments": ARGUMENTS}
    with pytest.raises(InvalidRequest):
        await served.respond("tools/call", {"name": "gateway_approve", "arguments": given}, HOST)
    assert "declined" in await refused(served, host=FakeHost({"action": "decline"}))
    assert served.approvals.listed() == []
    assert files.asked == []


async def test_the_two_step_tool_does_not_change_what_was_denied_in_a_terminal(router: MakeRouter, files: Any) -> None:
    served = router(files, policy=policy("two-step"))
    await refused(served, SILENT)
    (waiting,) = served.approvals.listed()
    served.approvals.settle(waiting.id, "denied")
    given = {"id": waiting.id, "tool": "files__delete", "arguments": ARGUMENTS}
    answer = await served.respond("tools/call", {"name": "gateway_approve", "arguments": given}, SILENT)
    assert answer["isError"]
    assert "declined" in await refused(served, SILENT)


async def test_the_two_step_tool_names_what_is_missing(router: MakeRouter, files: Any) -> None:
    served = router(files, policy=policy("two-step"))
    answer = await served.respond("tools/call", {"name": "gateway_approve", "arguments": {"tool": "x"}}, SILENT)
    assert answer["isError"]
    assert "Missing: id, arguments" in str(answer)


async def test_the_two_step_tool_does_not_exist_otherwise(router: MakeRouter, files: Any) -> None:
    served = router(files, policy=policy())
    assert "gateway_approve" not in str(await served.respond("tools/list", {}, SILENT))
    with pytest.raises(InvalidRequest):
        await served.respond("tools/call", {"name": "gateway_approve", "arguments": {}}, SILENT)


async def test_a_modern_host_is_asked_by_a_result_and_repeats_its_call(router: MakeRouter, files: Any) -> None:
    with anyio.fail_after(30):
        async with open_bridge() as bridge:
            served, host = router(files, policy=policy(), bridge=bridge), FakeHost()
            asked = await delete(served, MODERN, host)
            assert asked["resultType"] == "input_required"
            ((key, request),) = asked["inputRequests"].items()
            assert (request["method"], files.asked) == ("elicitation/create", [])
            again = {"inputResponses": {key: YES}, "requestState": asked["requestState"]}
            await delete(served, MODERN, host, **again)
            assert len(files.asked) == 1
            with pytest.raises(InvalidRequest):
                await delete(served, MODERN, host, **again)
            asked = await delete(served, MODERN, host)
            declined = {key: {"action": "decline"} for key in asked["inputRequests"]}
            with pytest.raises(NotAllowed):
                await delete(served, MODERN, host, inputResponses=declined, requestState=asked["requestState"])
            assert len(files.asked) == 1


async def test_further_rounds_of_an_approved_call_are_not_asked_again(router: MakeRouter, files: Any) -> None:
    def answer(method: str, params: Mapping[str, Any]) -> Any:
        if "requestState" in params:
            return {"content": [{"type": "text", "text": "done"}]}
        return {"resultType": "input_required", "requestState": "upstream's", "inputRequests": {}}

    files.answer = answer
    with anyio.fail_after(30):
        async with open_bridge() as bridge:
            served, host = router(files, policy=policy(), bridge=bridge), FakeHost(YES)
            asked = await delete(served, MODERN, host)
            responses = dict.fromkeys(asked["inputRequests"], YES)
            more = await delete(served, MODERN, host, inputResponses=responses, requestState=asked["requestState"])
            assert more["resultType"] == "input_required"
            done = await delete(served, MODERN, host, requestState=more["requestState"])
            assert done["content"][0]["text"] == "done"
            asked = await delete(served, MODERN, host, requestState=more["requestState"])
            assert [each["method"] for each in asked["inputRequests"].values()] == ["elicitation/create"]
            assert len(files.asked) == 2
            await delete(served, HOST, host)
            assert len(host.asked) == 1


@pytest.mark.parametrize("caller", [SILENT, HOST, MODERN, replace(MODERN, capabilities={})], ids=range(4))
@pytest.mark.parametrize("host", [None, FakeHost()], ids=["no host", "a host"])
async def test_an_invented_state_is_no_approval(router: MakeRouter, files: Any, caller: Caller, host: Any) -> None:
    served = router(files, policy=policy())
    for state in ("x", "", {}, "gw1.abc"):
        with pytest.raises((NotAllowed, InvalidRequest)):
            await delete(served, caller, host, requestState=state, inputResponses={"elicitation-1": YES})
    assert files.asked == []


def a_call(number: int = 0, owner: str = "one", principal: str = "p", **arguments: Any) -> CallToApprove:
    return CallToApprove(owner, principal, "host", "f__t", "f", "t", {"number": number, **arguments}, "rule", "")


def test_calls_that_wait_are_bounded_for_each_principal_whatever_its_hosts_are_called() -> None:
    approvals = Approvals()
    for number in range(MOST_OF_ONE):
        approvals.wait_for(a_call(number, owner=f"host {number}"))
    approvals.wait_for(a_call(0, owner="host 0"))
    with pytest.raises(NotAllowed):
        approvals.wait_for(a_call(MOST_OF_ONE))
    approvals.wait_for(a_call(owner="other", principal="other"))


def test_if_too_many_wait_the_oldest_of_whoever_has_most_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.routing.approvals.MOST", 4)
    approvals = Approvals()
    for number, principal in enumerate(["one", "many", "many", "many"]):
        approvals.wait_for(a_call(number, principal=principal, owner=principal))
    approvals.wait_for(a_call(9, principal="new", owner="new"))
    waiting = [(each.call.principal, each.call.arguments["number"]) for each in approvals.listed()]
    assert waiting == [("one", 0), ("many", 2), ("many", 3), ("new", 9)]


def test_calls_and_approvals_are_forgotten_after_a_while() -> None:
    now = 0.0
    approvals = Approvals(60, lambda: now)
    waiting = approvals.wait_for(a_call())
    now = 50.0
    approvals.settle(waiting.id, "approved")
    now = 105.0
    assert approvals.take(a_call()) == "approved"
    approvals.settle(approvals.wait_for(a_call()).id, "approved")
    now = 200.0
    assert approvals.take(a_call()) is None
    with pytest.raises(InvalidRequest):
        approvals.settle(waiting.id, "approved")


def test_long_arguments_are_cut_and_it_is_said_how_long_they_are() -> None:
    shown = a_call(text="x" * 100_000).shown_arguments
    assert len(shown) < 5_000
    assert "100," in shown[-40:]


def test_the_order_of_arguments_does_not_matter_and_their_values_do() -> None:
    assert a_call(a=1, b="\ud800").key == a_call(b="\ud800", a=1).key
    assert a_call(a=1).key != a_call(a="1").key
