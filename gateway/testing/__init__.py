"""Test helpers for authors of MCP servers, stores and agents: `assert_seen`, `check_store`, `replayed_gateway`,
and stand-ins of model APIs.

Modules are imported on first use, because the stand-ins (`gateway.testing.model_apis`) do not need the simulated hosts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.testing.assertions import HOSTS, PATIENCE_SECONDS, assert_seen, check_store
    from gateway.testing.replay import ReplayedGateway, replayed_gateway

__all__ = ["HOSTS", "PATIENCE_SECONDS", "ReplayedGateway", "assert_seen", "check_store", "replayed_gateway"]

_REPLAYS = frozenset({"ReplayedGateway", "replayed_gateway"})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gateway.testing import assertions, replay

    return getattr(replay if name in _REPLAYS else assertions, name)
