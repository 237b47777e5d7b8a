"""Look for patterns that match nothing, such as misspelt names, and for rules that can never apply. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from gateway.cli.diagnosis.findings import CheckResult
from gateway.config.moments import seconds_of_moment
from gateway.config.schema import Settings
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.grant import SEPARATOR
from gateway.core.policy import shadowed_rules

Tools = Mapping[str, Sequence[str]]
"""The names of each upstream's tools, as far as they are known."""

_SHOWN = 200


class _Globs(NamedTuple):
    """The patterns of one table: `where` it is, and `whose` they are in words, if that says more."""

    about: str
    where: str
    upstreams: Iterable[str] = ()
    tools: Iterable[str] = ()
    whose: str = ""
    key: str = "tools"
    """The key of `tools`."""


def check_globs(settings: Settings, tools: Tools) -> Iterator[CheckResult]:
    """Report patterns that match no upstream, no tool, or no principal. `tools` are those that each upstream lists now.

    Patterns for tools are judged only if every upstream that they may mean lists its tools.
    """
    for globs in (*_of_access(settings), *_of_rules(settings), *_of_toolsets(settings)):
        yield from _unmatched(globs, settings, tools)
    yield from _contents_of_toolsets(settings)
    yield from _principals(settings)


def check_table(table: str, settings: Settings, tools: Tools) -> Iterator[CheckResult]:
    """Report the patterns of one table of `[access]`, such as `tokens.alice`, that match nothing."""
    for globs in _of_access(settings):
        if globs.where == f"access.{table}":
            yield from _unmatched(globs, settings, tools)


def expired_tokens(settings: Settings, now: float) -> Iterator[CheckResult]:
    """Report the tokens that have expired. `now` is in seconds since 1970."""
    for name, token in settings.access.tokens.items():
        if token.expires is not None and seconds_of_moment(token.expires) <= now:
            text = f"access.tokens.{name}: expired on {token.expires:%Y-%m-%d}, so it is refused"
            yield CheckResult("access", "warning", text, f"mcp-gateway token rm {name}, or another with token add")


def check_order(settings: Settings) -> Iterator[CheckResult]:
    """Report rules that can never apply, such as one behind a rule that matches whatever it matches."""
    for place, name, why in shadowed_rules(settings.policy.rules, read_only=settings.policy.read_only):
        text = f"policy.rules[{place}]: the rule {name!r} can never apply: {why}"
        yield CheckResult("policy", "warning", text, "the first rule that matches decides: move it up, or remove it")


def _of_access(settings: Settings) -> Iterator[_Globs]:
    access = settings.access
    for name, token in access.tokens.items():
        yield _Globs("access", f"access.tokens.{name}", token.upstreams, token.tools)
    for name, person in access.people.items():
        yield _Globs("access", f"access.people.{name}", person.upstreams, person.tools)
    server = access.authorization_server
    if server is not None and server.oidc is not None:
        yield _Globs("access", "access.authorization_server.oidc", server.oidc.upstreams, server.oidc.tools)
    for name, issuer in access.issuers.items():
        yield _Globs("access", f"access.issuers.{name}", issuer.upstreams, issuer.tools)
        for group, reach in issuer.groups.items():
            yield _Globs("access", f"access.issuers.{name}.groups.{group}", reach.upstreams, reach.tools)
    yield _Globs("access", "access.scopes", tools=access.scopes)


def _of_rules(settings: Settings) -> Iterator[_Globs]:
    for place, rule in enumerate(settings.policy.rules):
        whose = f" of the rule {rule.name!r}"
        yield _Globs("policy", f"policy.rules[{place}]", rule.upstreams or (), rule.tools or (), whose)


def _of_toolsets(settings: Settings) -> Iterator[_Globs]:
    for name, toolset in settings.toolsets.items():
        where = f"toolsets.{name}"
        yield _Globs("toolsets", where, toolset.upstreams, toolset.tools)
        yield _Globs("toolsets", where, tools=toolset.exclude, key="exclude")


def _contents_of_toolsets(settings: Settings) -> Iterator[CheckResult]:
    """Report patterns for prompts and resources whose upstreams do not exist; what these list is not known here."""
    for name, toolset in settings.toolsets.items():
        for key, patterns in (("prompts", toolset.prompts), ("resources", toolset.resources)):
            for glob in patterns:
                if not _matches(glob.partition(SEPARATOR)[0], settings.upstreams):
                    globs = _Globs("toolsets", f"toolsets.{name}")
                    yield _finding(globs, key, glob, "upstream", _there_are(settings.upstreams))


def _unmatched(globs: _Globs, settings: Settings, tools: Tools) -> Iterator[CheckResult]:
    names = [f"{upstream}{SEPARATOR}{tool}" for upstream, listed in tools.items() for tool in listed]
    silent = [upstream for upstream in settings.upstreams if not tools.get(upstream)]
    for glob in globs.upstreams:
        if glob != "*" and not _matches(glob, settings.upstreams):
            yield _finding(globs, "upstreams", glob, "upstream", _there_are(settings.upstreams))
    for glob in globs.tools:
        if glob != "*" and not _matches(glob, names) and not any(_may_mean(glob, upstream) for upstream in silent):
            yield _finding(globs, globs.key, glob, "tool", "fix the name there; tools are written SERVER__TOOL")


def _finding(globs: _Globs, key: str, glob: str, what: str, remedy: str) -> CheckResult:
    where = globs.where if globs.where == "access.scopes" else f"{globs.where}.{key}"
    text = f"{where}: {plain(glob, _SHOWN)!r}{globs.whose} matches no {what}"
    return CheckResult(globs.about, "warning", text, remedy)


def _there_are(upstreams: Iterable[str]) -> str:
    return f"fix the name there; the upstreams are: {', '.join(upstreams) or 'none'}"


def _principals(settings: Settings) -> Iterator[CheckResult]:
    """Report patterns of rules that match no principal, if all who may come are known."""
    if settings.access.admits_unnamed:
        return
    known = dict.fromkeys((Caller().principal, "token", *settings.access.principals()))
    for place, rule in enumerate(settings.policy.rules):
        for glob in rule.principals or ():
            if not _matches(glob, known):
                text = f"policy.rules[{place}].principals: {plain(glob, _SHOWN)!r} of the rule {rule.name!r}"
                remedy = f"fix the name there; the principals are: {', '.join(known)}"
                yield CheckResult("policy", "warning", f"{text} matches no principal", remedy)


def _matches(glob: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for name in names)


def _may_mean(glob: str, upstream: str) -> bool:
    """Whether a glob may match a tool of an upstream whose tools are not known."""
    named = glob.partition(SEPARATOR)[0]
    return "*" in named or fnmatchcase(upstream, named)
