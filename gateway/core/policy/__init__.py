"""Policy: which tools a caller may call, which of its calls its user has to approve, and pins of tools. Pure."""

from gateway.core.model.tool_facts import Hints, ToolFacts
from gateway.core.policy.arguments import ArgumentCondition
from gateway.core.policy.decide import NOTHING_SAID, UNRESTRICTED, Decision, Effect, Policy, PolicyRule
from gateway.core.policy.hints import hints_of
from gateway.core.policy.shadowed_rules import ShadowedRule, shadowed_rules

__all__ = [
    "NOTHING_SAID",
    "UNRESTRICTED",
    "ArgumentCondition",
    "Decision",
    "Effect",
    "Hints",
    "Policy",
    "PolicyRule",
    "ShadowedRule",
    "ToolFacts",
    "hints_of",
    "shadowed_rules",
]
