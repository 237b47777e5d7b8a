"""The checks that cannot pass through a gateway, each with its reason. `run.py` fails on one that does pass."""

from collections.abc import Mapping

Explained = Mapping[tuple[str, str], str]

NOTHING_CLOSED = {
    ("server-sse-polling", "server-sse-disconnect-resume"): (
        "In 2026-07-28 streams are not resumed, so the tool closes none, and the suite says that there was nothing to "
        "resume."
    )
}

UNASKED = (
    "A server of the handshake revisions asks with requests, one after the other, which have no keys, so the gateway "
    "makes up keys. "
)

NO_CODE = (
    "The code -32021 was added in 2026-07-28. An upstream that does not know it reports in an ordinary result what is "
    "missing, and the gateway invents no error."
)

MODERN_HOST: Explained = {
    ("input-required-result-basic-elicitation", "sep-2322-elicitation-incomplete"): UNASKED
    + "The suite looks for the key `user_name`.",
    ("input-required-result-basic-elicitation", "sep-2322-elicitation-complete"): UNASKED
    + "The suite continues only with the key `user_name`.",
    ("input-required-result-ignore-extra-params", "sep-2322-ignore-unexpected-params"): UNASKED
    + "An answer sent with the first call does not answer any question yet.",
    ("input-required-result-multiple-input-requests", "sep-2322-multiple-inputs-incomplete"): UNASKED
    + "The suite expects three questions at once.",
    ("input-required-result-multiple-input-requests", "sep-2322-multiple-inputs-complete"): UNASKED
    + "The suite continues only if three questions come at once.",
    ("server-stateless", "sep-2575-server-rejects-undeclared-capability"): NO_CODE,
    ("server-stateless", "sep-2575-missing-capability-http-400"): NO_CODE,
}

EXPLAINED: Mapping[tuple[str, str], Explained] = {
    ("2025-11-25 only", "2026-07-28"): MODERN_HOST,
    ("2026-07-28 only", "2025-11-25"): NOTHING_CLOSED,
}
"""By which eras the upstream speaks (a key of `run.UPSTREAMS`) and which revision the host does; then by the scenario
and the id of the check."""

LEFT_OUT = ("request-metadata", "sep-2575-client-declares-")
"""A client scenario, and how the ids of its checks begin that are not compared."""

WHY_LEFT_OUT = """`request-metadata` also checks that declared capabilities are well-formed, if there are any. Its
server offers nothing, so no host's request has to reach it through the gateway, and the gateway's own requests declare
none. The three checks are left out; the elicitations of both tables prove that hosts' declarations arrive.
"""

OAUTH_NOT_APPLICABLE: Mapping[str, str] = {}
"""OAuth scenarios (`auth/*`) that cannot pass, each with its reason. `run.py` fails on one that does."""
