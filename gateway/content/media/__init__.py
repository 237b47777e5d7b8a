"""Media processing: images, vector graphics, documents and sound, in worker processes that can be killed.

`MediaWorkers` is imported lazily: a worker imports this package too, and does not need the pool.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.content.media.workers import MediaWorkers

__all__ = ["MediaWorkers"]


def __getattr__(name: str) -> Any:
    if name != "MediaWorkers":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gateway.content.media.workers import MediaWorkers

    return MediaWorkers
