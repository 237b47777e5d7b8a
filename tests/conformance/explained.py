"""The checks that cannot pass through a gateway, each with its reason. `run.py` fails on one that does pass."""

from collections.abc import Mapping

Explained = Mapping[tuple[str, str], str]

NOTHING_CLOSED = {
    ("server-sse-polling", "server-sse-disconnect-resume"): (
        "In 2026-07-28 nobody comes back to a stream, so the tool closes none: the suite says that there was nothing "
        "to resume."
    )
}

UNASKED = (
    "A server of the handshake revisions asks with requests, one after the other, which have no keys: the gateway "
    "gives them keys of its own. "
)

NO_CODE = (
    "The code -32021 came with 2026-07-28. An upstream that does not know it says in a result of its own what it "
    "misses, and the gateway invents no error."
)

MODERN_HOST: Explained = {
    ("input-required-result-basic-elicitation", "sep-2322-elicitation-incomplete"): UNASKED
    + "The suite looks for the key `user_name`.",
    ("input-required-result-basic-elicitation", "sep-2322-elicitation-complete"): UNASKED
    + "The suite goes on only with the key `user_name`.",
    ("input-required-result-ignore-extra-params", "sep-2322-ignore-unexpected-params"): UNASKED
    + "An answer that comes with the first call is an answer to nothing yet.",
    ("input-required-result-multiple-input-requests", "sep-2322-multiple-inputs-incomplete"): UNASKED
    + "The suite wants three questions at once.",
    ("input-required-result-multiple-input-requests", "sep-2322-multiple-inputs-complete"): UNASKED
    + "The suite goes on only where three questions come at once.",
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

WHY_LEFT_OUT = """`request-metadata` also looks whether capabilities are declared well, if any are. Its server offers
nothing, so no request of a host has to reach it through the gateway, and what the gateway asks for itself declares
none. The three checks are left out; what hosts declare is proven by the elicitations of both tables.
"""
