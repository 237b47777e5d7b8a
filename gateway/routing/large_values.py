"""Work on what upstreams declare: on large values in a thread, so that other hosts do not wait."""

from collections.abc import Callable
from typing import Any, TypeVar

from anyio import to_thread

from gateway.core.model.json_size import size_of

_LARGE = 32 * 1024
"""Characters above which a value is large."""

ReturnedT = TypeVar("ReturnedT")


def is_large(value: Any) -> bool:
    """Whether work on a JSON value would let others wait. Counting stops at the bound."""
    return size_of(value, most=_LARGE).total > _LARGE


async def work_on(value: Any, work: Callable[[], ReturnedT]) -> ReturnedT:
    """Return what `work` returns; in a thread if the value that it goes through is large."""
    return await to_thread.run_sync(work) if is_large(value) else work()
