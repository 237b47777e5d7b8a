"""Check whether users can be asked about the calls that rules let pass only with an approval. Pure."""

from collections.abc import Iterator, Mapping

from gateway.cli.diagnosis.findings import CheckResult
from gateway.config.schema import Settings
from gateway.core.fact_words import plain
from gateway.core.profiles.profile import Profile
from gateway.system.loopback import is_loopback

ABOUT = "policy"
_TWO_STEP = '[policy] approval = "two-step", if every host shows its user each call before it makes it'


def check_approvals(settings: Settings, hosts: Mapping[str, Profile]) -> Iterator[CheckResult]:
    """Report rules with `approve` whose users may have no way to approve. `hosts` are the profiles to judge."""
    names = [repr(plain(rule.name, 60)) for rule in settings.policy.rules if rule.effect == "approve"]
    if not names or settings.policy.approval == "two-step":
        return
    calls = f"calls by the rule{'s' if names[1:] else ''} {', '.join(names)} wait for an approval"
    if settings.policy.approval == "terminal":
        cannot, remedy = "it is given in a terminal of this machine alone", '[policy] approval = "ask" asks in hosts'
    else:
        cannot = "if their host cannot ask them, it is given in a terminal of this machine alone"
        remedy = f"hosts that ask their users (elicitation), or {_TWO_STEP}"
    if _others_come(settings):
        text = f"{calls}, which people who come over HTTP may be unable to give: {cannot}"
        yield CheckResult(ABOUT, "warning", text, f"{remedy}; or somebody here runs `mcp-gateway approvals`")
    elif settings.policy.approval == "ask":
        yield from _hosts_that_cannot(calls, hosts)


def _hosts_that_cannot(calls: str, hosts: Mapping[str, Profile]) -> Iterator[CheckResult]:
    for name, profile in hosts.items():
        if "elicitation" in profile.features.broken:
            text = f"{calls}; {profile.title} shows its user no such question"
            yield CheckResult(ABOUT, "warning", text, f"there, run `mcp-gateway approvals`; or {_TWO_STEP}", (name,))


def _others_come(settings: Settings) -> bool:
    """Whether people come who have no terminal on this machine, as far as the configuration tells."""
    access = settings.access
    tables = (access.tokens, access.people, access.issuers)
    return any(tables) or access.authorization_server is not None or not is_loopback(settings.http.bind)
