"""Look for rules of the policy that match nothing: a misspelt name would otherwise deny nothing, unnoticed. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from gateway.cli.diagnosis.findings import CheckResult
from gateway.config.schema import Settings
from gateway.core.model.grant import SEPARATOR


def check_rules(settings: Settings, tools: Mapping[str, Sequence[str]]) -> Iterator[CheckResult]:
    """Report the globs of rules that match no upstream, or no tool. `tools` are those that each upstream lists now.

    Globs for tools are judged only if every upstream that they may mean lists its tools.
    """
    names = [f"{upstream}{SEPARATOR}{tool}" for upstream, listed in tools.items() for tool in listed]
    silent = [upstream for upstream, listed in tools.items() if not listed]
    for place, rule in enumerate(settings.policy.rules):
        where = f"policy.rules[{place}]"
        for glob in rule.upstreams or ():
            if not _matches(glob, settings.upstreams):
                yield _unmatched(f"{where}.upstreams", glob, "upstream", rule.name)
        for glob in rule.tools or ():
            if not _matches(glob, names) and not any(_may_mean(glob, upstream) for upstream in silent):
                yield _unmatched(f"{where}.tools", glob, "tool", rule.name)


def _matches(glob: str, names: Mapping[str, object] | Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for name in names)


def _may_mean(glob: str, upstream: str) -> bool:
    """Whether a glob may match a tool of an upstream whose tools are not known."""
    named = glob.partition(SEPARATOR)[0]
    return "*" in named or fnmatchcase(upstream, named)


def _unmatched(where: str, glob: str, what: str, rule: str) -> CheckResult:
    text = f"{where}: {glob!r} of the rule {rule!r} matches no {what}"
    return CheckResult("policy", "warning", text, "fix the name there; tools are written SERVER__TOOL")
