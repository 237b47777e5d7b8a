"""Rules hold in the list and at the call alike, for each principal; and for resources of whole upstreams."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.config.policy_settings import PolicySettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.errors import InvalidRequest, NotAllowed, UnknownResource, UnknownTool
from gateway.routing import Router

pytestmark = pytest.mark.anyio

ALICE = Caller(revision="2025-11-25", client_name="codex", principal="alice")
BOB = replace(ALICE, principal="bob")

MakeRouter = Callable[..., Router]


def tool(name: str, **hints: bool) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **({"annotations": hints} if hints else {})}


def rules(*given: Mapping[str, Any], **more: Any) -> PolicySettings:
    numbered = [{"name": f"rule-{number}", **rule} for number, rule in enumerate(given, 1)]
    return PolicySettings.model_validate({"rules": numbered, **more})


@pytest.fixture
def docs(fake_upstream: Any) -> Any:
    return fake_upstream(
        "docs",
        [tool("find", readOnlyHint=True), tool("delete"), tool("tag", destructiveHint=False)],
        resource_list=[{"uri": "docs://a", "name": "a"}],
        template_list=[{"uriTemplate": "docs://{x}", "name": "x"}],
        prompt_list=[{"name": "ask"}],
        offers=("completions",),
        instructions="Read before you ask.",
    )


async def names(served: Router, caller: Caller = ALICE) -> list[str]:
    return [each["name"] for each in (await served.respond("tools/list", {}, caller))["tools"]]


async def call(served: Router, name: str, arguments: Mapping[str, Any] | None = None, caller: Caller = ALICE) -> Any:
    return await served.respond("tools/call", {"name": name, "arguments": arguments or {}}, caller)


async def test_without_rules_everything_is_allowed(router: MakeRouter, docs: Any) -> None:
    assert await names(router(docs)) == ["docs__find", "docs__delete", "docs__tag"]


async def test_a_denied_tool_is_neither_listed_nor_called_and_the_error_names_the_rule(
    router: MakeRouter, docs: Any
) -> None:
    served = router(docs, policy=rules({"effect": "deny", "tools": ["docs__del*"], "reason": "Nothing goes."}))
    assert await names(served) == ["docs__find", "docs__tag"]
    with pytest.raises(NotAllowed, match=r"rule 'rule-1' .*Nothing goes\.") as refused:
        await call(served, "docs__delete")
    assert refused.value.rule == "rule-1"
    assert docs.asked == []


async def test_the_first_rule_that_matches_decides(router: MakeRouter, docs: Any) -> None:
    first = {"effect": "allow", "tools": ["docs__delete"], "principals": ["ali*"]}
    served = router(docs, policy=rules(first, {"effect": "deny", "destructive": True}))
    assert await names(served) == ["docs__find", "docs__delete", "docs__tag"]
    assert await names(served, BOB) == ["docs__find", "docs__tag"]
    await call(served, "docs__delete")
    with pytest.raises(NotAllowed):
        await call(served, "docs__delete", caller=BOB)


@pytest.mark.parametrize("where", ["policy", "upstream"])
async def test_read_only_offers_only_what_declares_to_change_nothing(router: MakeRouter, docs: Any, where: str) -> None:
    docs.settings = UpstreamSettings(command="fake", read_only=where == "upstream")
    upstreams = {"docs": docs.settings}
    allowing = {"effect": "allow", "tools": ["*"]}
    served = router(docs, policy=rules(allowing, read_only=where == "policy"), upstreams=upstreams)
    assert await names(served) == ["docs__find"]
    with pytest.raises(NotAllowed, match=r"read_only"):
        await call(served, "docs__tag")


@pytest.mark.parametrize(
    "second",
    [tool("delete", readOnlyHint=True), tool("delete", destructiveHint=False)],
)
async def test_a_second_tool_of_the_same_name_does_not_vouch_for_the_first(
    router: MakeRouter, docs: Any, second: dict[str, Any]
) -> None:
    docs.tool_list = [tool("delete"), second]
    served = router(docs, policy=rules({"effect": "deny", "destructive": True}))
    assert await names(served) == []
    with pytest.raises(NotAllowed):
        await call(served, "docs__delete")


async def test_a_tool_that_claims_to_read_only_and_to_destroy_counts_as_destructive(
    router: MakeRouter, docs: Any
) -> None:
    docs.tool_list = [tool("odd", readOnlyHint=True, destructiveHint=True)]
    assert await names(router(docs, policy=rules({"effect": "deny", "destructive": True}))) == []


async def test_a_rule_on_arguments_decides_about_calls_only(router: MakeRouter, docs: Any) -> None:
    etc = {"required": ["path"], "properties": {"path": {"pattern": "^/etc/"}}}
    served = router(docs, policy=rules({"effect": "deny", "arguments": etc}))
    assert "docs__delete" in await names(served)
    await call(served, "docs__delete", {"path": "/tmp/x"})
    with pytest.raises(NotAllowed, match="with these arguments"):
        await call(served, "docs__delete", {"path": "/etc/passwd"})
    assert len(docs.asked) == 1


async def test_a_check_that_would_take_too_long_counts_as_the_stricter_outcome(router: MakeRouter, docs: Any) -> None:
    costly = {"properties": {"items": {"uniqueItems": True}}}
    arguments = {"items": [str(number) for number in range(300_000)]}
    served = router(docs, policy=rules({"effect": "deny", "arguments": {"not": costly}}))
    with pytest.raises(NotAllowed):
        await call(served, "docs__delete", arguments)
    served = router(docs, policy=rules({"effect": "allow", "arguments": costly}, {"effect": "deny"}))
    with pytest.raises(NotAllowed):
        await call(served, "docs__delete", arguments)


async def test_rules_narrow_what_a_token_reaches_and_never_widen_it(router: MakeRouter, docs: Any) -> None:
    served = router(docs, policy=rules({"effect": "allow"}))
    reader = replace(ALICE, grant=Grant(tools=("docs__find",)))
    assert await names(served, reader) == ["docs__find"]
    with pytest.raises(UnknownTool):
        await call(served, "docs__delete", caller=reader)


async def test_the_own_tools_of_the_gateway_are_not_restricted(router: MakeRouter, docs: Any) -> None:
    served = router(docs, profile="viewer", policy=rules({"effect": "deny"}))
    assert await names(served) == ["gateway_view"]
    await call(served, "gateway_view")


CLOSED: list[tuple[str, dict[str, Any]]] = [
    ("resources/read", {"uri": "docs://a"}),
    ("resources/read", {"uri": "docs://b"}),
    ("prompts/get", {"name": "docs__ask"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "docs__ask"}, "argument": {"name": "a"}}),
]
LISTS = {"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}


async def test_an_upstream_that_is_denied_has_no_resources_and_prompts(router: MakeRouter, docs: Any) -> None:
    served = router(docs, policy=rules({"effect": "deny", "upstreams": ["docs"], "principals": ["bob"]}))
    for method, key in LISTS.items():
        assert any("docs" in str(each) for each in (await served.respond(method, {}, ALICE))[key])
        assert not any("docs" in str(each) for each in (await served.respond(method, {}, BOB))[key])
    for method, params in CLOSED:
        with pytest.raises(InvalidRequest):
            await served.respond(method, params, BOB)
    with pytest.raises(UnknownResource):
        await served.watch("docs://a", BOB)
    assert docs.asked == []


async def test_a_rule_about_tools_leaves_resources_alone_and_a_tool_may_be_kept_of_a_denied_upstream(
    router: MakeRouter, docs: Any
) -> None:
    kept = {"effect": "allow", "tools": ["docs__find"]}
    served = router(docs, policy=rules(kept, {"effect": "deny", "upstreams": ["docs"]}))
    assert await names(served) == ["docs__find"]
    await call(served, "docs__find")
    assert (await served.respond("prompts/list", {}, ALICE))["prompts"] == []
    served = router(docs, policy=rules({"effect": "deny", "tools": ["docs__*"]}))
    assert await names(served) == []
    assert len((await served.respond("prompts/list", {}, ALICE))["prompts"]) == 1


async def test_the_instructions_of_a_denied_upstream_are_not_given(router: MakeRouter, docs: Any) -> None:
    assert len(router(docs).introductions.parts) == 1
    assert router(docs, policy=rules({"effect": "deny", "upstreams": ["docs"]})).introductions.parts == ()


async def test_a_withheld_tool_takes_no_name_from_another(router: MakeRouter, docs: Any, fake_upstream: Any) -> None:
    other = fake_upstream("other", [tool("find")])
    served = router(docs, other, prefix="never", policy=rules({"effect": "deny", "tools": ["docs__find"]}))
    assert "find" in await names(served)
    await call(served, "find")
    assert len(other.asked) == 1


async def test_changed_rules_hold_at_once_and_hosts_are_told(router: MakeRouter, docs: Any, profiles: Any) -> None:
    from gateway.config.schema import Settings

    served = router(docs)
    told: list[str] = []
    served.subscribe(lambda change: told.append(change.kind))
    changed = Settings(policy=rules({"effect": "deny", "tools": ["docs__delete"]}))
    shaper: Any = None
    served.reconfigure(changed, profiles, shaper)
    assert await names(served) == ["docs__find", "docs__tag"]
    assert set(told) == {"tools", "prompts", "resources"}
