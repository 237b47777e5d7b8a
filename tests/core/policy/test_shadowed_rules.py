"""Rules that can never apply: each that is named never decides, whatever the tool, and mistakes are found."""

import random
from itertools import product
from typing import Any

import pytest

from gateway.config.policy_settings import RuleSettings
from gateway.core.policy import Hints, Policy, ToolFacts, shadowed_rules


def rule(name: str, effect: str = "approve", **more: Any) -> RuleSettings:
    return RuleSettings.model_validate({"name": name, "effect": effect, **more})


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({}, {"destructive": True}),
        ({"upstreams": ["mail"]}, {"tools": ["mail__send"]}),
        ({"tools": ["mail__*"]}, {"upstreams": ["mail"], "destructive": True}),
        ({"tools": ["*__s*"]}, {"tools": ["mail__send", "chat__s[ae]*"], "arguments": {"required": ["to"]}}),
        ({"read_only": False}, {"destructive": True}),
        ({"destructive": False}, {"read_only": True, "principals": ["ann"]}),
        ({"principals": ["a*"]}, {"principals": ["ann", "al?"], "tools": ["mail__send"]}),
    ],
)
def test_a_rule_behind_one_that_matches_as_much_is_named_with_it(earlier: Any, later: Any) -> None:
    rules = [rule("far-off", "deny", tools=["else__x"]), rule("first", "deny", **earlier), rule("late", **later)]
    assert list(shadowed_rules(rules)) == [(2, "late", "the earlier rule 'first' matches whatever it matches")]
    assert list(shadowed_rules([rules[0], rules[2], rules[1]])) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"arguments": {}}, {"tools": ["mail__send"]}),
        ({"tools": ["*"]}, {"upstreams": ["mail"]}),  # which is about its resources and prompts too
        ({"tools": ["mail__?"]}, {"tools": ["mail__*"]}),
        ({"tools": ["mail__[a-z]"]}, {"tools": ["mail__?"]}),
        ({"principals": ["ann"]}, {"tools": ["mail__send"]}),
        ({"upstreams": ["mail"]}, {"tools": ["m*__send"]}),
        ({"destructive": True}, {"read_only": False}),
    ],
)
def test_a_rule_that_still_decides_something_is_not_named(earlier: Any, later: Any) -> None:
    assert list(shadowed_rules([rule("first", "deny", **earlier), rule("late", **later)])) == []


def test_rules_that_contradict_themselves_or_the_read_only_gateway_are_named() -> None:
    both = rule("both", read_only=True, destructive=True)
    writes = rule("writes", destructive=True)
    assert [each.name for each in shadowed_rules([both, writes])] == ["both"]
    assert [each.name for each in shadowed_rules([writes, rule("reads", read_only=True)], read_only=True)] == ["writes"]


UPSTREAMS, TOOLS, PRINCIPALS = ("mail", "mai", "chat"), ("send", "s", "se*d", "look"), ("ann", "al")
CHOICES: dict[str, list[Any]] = {
    "upstreams": [None, ["mail"], ["m*"], ["mai?"], ["mail", "chat"], ["*"]],
    "tools": [None, ["mail__send"], ["mail__*"], ["*__s*"], ["*__?"], ["mail__[sl]*", "chat__look"], ["mail*"]],
    "principals": [None, None, ["ann"], ["a*"], ["a?"]],
    "read_only": [None, None, True, False],
    "destructive": [None, None, True, False],
    "arguments": [None, None, {"required": ["to"]}],
}


def test_no_rule_that_is_named_ever_decides_anything() -> None:
    chance, found = random.Random(11), 0
    hints = [Hints(read, destroys, True, True) for read, destroys in ((True, False), (False, True), (False, False))]
    facts = [ToolFacts(*each) for each in product(UPSTREAMS, TOOLS, hints)]
    for _ in range(600):
        rules = [rule(f"r{n}", **{key: chance.choice(some) for key, some in CHOICES.items()}) for n in range(3)]
        rules = [each.model_copy(update={"effect": chance.choice(["allow", "deny", "approve"])}) for each in rules]
        named = {each.name: each.place for each in shadowed_rules(rules)}
        found += len(named)
        policy = Policy(rules)
        for name, place in named.items():
            without = Policy([*rules[:place], *rules[place + 1 :]])
            for tool, who in product(facts, PRINCIPALS):
                for arguments in ({}, {"to": 1}):
                    assert policy.for_call(tool, who, arguments).rule != name
                assert policy.for_list(tool, who).rule != name
            for upstream, who in product(UPSTREAMS, PRINCIPALS):
                assert policy.shares(upstream, who) == without.shares(upstream, who)
    assert found > 50
