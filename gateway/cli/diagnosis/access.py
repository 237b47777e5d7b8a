"""Check who may use the gateway: expired tokens, patterns that match nothing, and rules that nobody can answer."""

import time
from collections.abc import Iterator, Mapping

from gateway.cli.diagnosis.approvals import check_approvals
from gateway.cli.diagnosis.findings import CheckResult
from gateway.cli.diagnosis.globs import Tools, check_globs, check_order, expired_tokens
from gateway.config.schema import Settings
from gateway.core.fact_words import counted
from gateway.core.profiles.profile import Profile


def check_access(settings: Settings, tools: Tools, hosts: Mapping[str, Profile]) -> Iterator[CheckResult]:
    """Examine tokens, people, issuers and rules. `tools` are those that each upstream lists now.

    `hosts` are the profiles to judge.
    """
    access = settings.access
    kinds = {"token": access.tokens, "table for a person": access.people, "issuer": access.issuers}
    if words := [counted(len(tables), kind) for kind, tables in kinds.items() if tables]:
        yield CheckResult("access", "ok", f"over HTTP: {', '.join(words)}")
    yield from (*expired_tokens(settings, time.time()), *check_globs(settings, tools), *check_order(settings))
    yield from check_approvals(settings, hosts)
