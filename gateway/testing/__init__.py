"""For the tests of people who write MCP servers, stores and agents: `assert_seen`, `check_store`, and stand-ins of
model APIs.

Nothing is imported before it is used: the stand-ins (`gateway.testing.model_apis`) need nothing of the simulated hosts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.testing.assertions import HOSTS, PATIENCE_SECONDS, assert_seen, check_store

__all__ = ["HOSTS", "PATIENCE_SECONDS", "assert_seen", "check_store"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gateway.testing import assertions

    return getattr(assertions, name)
