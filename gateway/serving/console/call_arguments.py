"""The arguments of past calls as they may be shown and written: with secrets masked."""

from collections.abc import Mapping
from typing import Any

from gateway.config.secrets import HIDDEN, all_secrets, longest_first
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import is_list, is_object
from gateway.serving.console.ports import ShownGateway
from gateway.telemetry.audit.mask_arguments import TOO_DEEP, masked
from gateway.telemetry.call_history import PastCall

_SHORTEST_SECRET = 6


def tool_of(gateway: ShownGateway, caller: Caller, call: PastCall) -> Mapping[str, Any] | None:
    """Return the tool of a call as its upstream lists it now, to everybody or to `caller`; None if it does not."""
    upstream = gateway.upstreams.get(call.record.upstream)
    # Some tools are there only for hosts that show pages, as the console does.
    tools = () if upstream is None else (*upstream.tools(), *upstream.lists_for(caller).tools)
    return next((tool for tool in tools if tool.get("name") == call.record.upstream_tool), None)


def given_arguments(gateway: ShownGateway, caller: Caller, call: PastCall) -> Any:
    """Return the arguments of a call, secrets masked; None if there were none, or they are no longer kept."""
    if (arguments := call.arguments) is None:
        return None
    schema = (tool_of(gateway, caller, call) or {}).get("inputSchema")
    return masked(arguments, schema, secrets_of(gateway), longest=None)


def repeatable_arguments(gateway: ShownGateway, caller: Caller, call: PastCall) -> Any:
    """Return the arguments of a call to make it again.

    Members with something that is masked are left out, so that nothing is called with what stands for a secret.
    """
    return _without_masked(given_arguments(gateway, caller, call))


def _without_masked(value: Any) -> Any:
    if is_object(value):
        return {name: _without_masked(one) for name, one in value.items() if is_object(one) or not _has_masked(one)}
    return value


def _has_masked(value: Any) -> bool:
    if isinstance(value, str):
        return HIDDEN in value or value == TOO_DEEP
    return any(map(_has_masked, value.values() if is_object(value) else value if is_list(value) else ()))


def secrets_of(gateway: ShownGateway) -> tuple[str, ...]:
    """Return the secrets of the configuration, the longest first."""
    return longest_first(all_secrets(gateway.settings), _SHORTEST_SECRET)
