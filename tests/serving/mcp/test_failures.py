"""Our errors as hosts get them."""

import inspect
import json

import pytest

from gateway import errors
from gateway.serving.mcp.failures import CODES, as_error, as_result, sole_gateway_error, unexpected
from gateway.telemetry import new_request

EVERY = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.GatewayError) and kind not in (errors.UpstreamRefused, errors.HostRefused)
]
"""Every error that a host may be told of in the gateway's own words."""


def make(kind):
    arguments = ("alpha", "went away") if issubclass(kind, errors.UpstreamError) else ("went away",)
    return kind(*arguments, remedy="look at it")


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
def test_every_error_of_ours_names_cause_and_remedy_to_the_host(kind, revision):
    error = as_error(make(kind), revision).error
    assert error.code < -32000
    assert "went away" in error.message
    assert "look at it" in error.message


@pytest.mark.parametrize(
    "kind",
    [
        errors.UpstreamTimeout,
        errors.UpstreamLost,
        errors.ExpiredHandle,
        errors.MediaError,
        errors.TooManyCalls,
        errors.AuditUnavailable,
    ],
)
def test_what_goes_wrong_with_a_call_is_told_to_the_model(kind):
    told = as_result("tools/call", make(kind))
    assert told is not None
    assert told["isError"] is True
    assert told["content"][0]["text"] == str(make(kind))
    assert as_result("tools/list", make(kind)) is None


@pytest.mark.parametrize("kind", [errors.UnknownTool, errors.InvalidRequest, errors.UnknownMethod, errors.ProfileError])
def test_a_mistake_in_the_request_is_told_to_the_host(kind):
    assert as_result("tools/call", make(kind)) is None


def test_a_resource_that_is_not_there_has_the_code_of_the_era():
    for kind in (errors.UnknownResource, errors.UnknownHandle, errors.ExpiredHandle):
        assert as_error(make(kind), "2025-11-25").error.code == -32002
        assert as_error(make(kind), "2026-07-28").error.code == -32602


def test_an_upstreams_own_error_comes_through_with_its_data():
    refused = errors.UpstreamRefused("alpha", -32042, "open this page", {"url": "https://example.com"})
    assert as_result("tools/call", refused) is None
    error = as_error(refused, "2025-11-25").error
    assert (error.code, error.message, error.data) == (-32042, "open this page", {"url": "https://example.com"})


def test_an_upstreams_missing_resource_has_the_code_of_the_hosts_era():
    refused = errors.UpstreamRefused("alpha", -32002, "gone")
    assert as_error(refused, "2025-11-25").error.code == -32002
    assert as_error(refused, "2026-07-28").error.code == -32602


def test_the_table_is_ordered_from_the_special_to_the_general():
    kinds = [kind for kind, _ in CODES]
    for position, kind in enumerate(kinds):
        assert not any(issubclass(later, kind) for later in kinds[position + 1 :])


def test_an_error_of_ours_is_found_inside_the_groups_that_task_groups_make():
    ours = make(errors.UpstreamLost)
    assert sole_gateway_error(ours) is ours
    assert sole_gateway_error(ExceptionGroup("", [ExceptionGroup("", [ours])])) is ours
    assert sole_gateway_error(ExceptionGroup("", [ours, ValueError()])) is None
    assert sole_gateway_error(ExceptionGroup("", [ValueError()])) is None


def test_a_mistake_of_ours_goes_to_the_log_and_not_to_the_host(caplog):
    error = unexpected("tools/call", ValueError("internals")).error
    assert error.code == -32603
    assert "internals" not in error.message
    assert "internals" in caplog.text
    assert error.data is None


def test_a_mistake_of_ours_names_the_request_by_which_the_log_has_it():
    with new_request() as ident:
        assert unexpected("tools/call", ValueError("internals")).error.data == {"requestId": ident}


def test_an_error_can_be_written_whatever_an_upstream_put_into_it() -> None:
    deep = json.loads("[" * 300 + "]" * 300)
    for data in (deep, {"half \ud800": "\udc00", "n": float("inf"), "digits": 10**5_000}, object()):
        error = as_error(errors.UpstreamRefused("maps", -5, "why \ud800", data), "2025-11-25")
        assert (error.code, error.message) == (-5, "why \ufffd")
        json.dumps(error.error.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode()
        error.error.model_dump_json()
