"""Errors for content that is missing or cannot be stored, worded alike for all stores."""

from gateway.config.store_settings import StoreSettings
from gateway.errors import ContentTooLarge, ExpiredHandle, UnknownHandle

EVICTED = "it had to make room for newer content"
LOST = "its bytes are no longer in the store"
_SHOWN = 80


def unknown(handle: str) -> UnknownHandle:
    """Return the error for an unknown handle, worded alike whether it never existed or belongs to someone else."""
    remedy = "copy the handle exactly, unless its content has been removed"
    return UnknownHandle(f"there is no content with the handle {handle[:_SHOWN]!r}", remedy=remedy)


def gone(handle: str, why: str) -> ExpiredHandle:
    """Return the error for content that is no longer there because of `why`."""
    return ExpiredHandle(
        f"the content of {handle[:_SHOWN]!r} is gone: {why}", remedy="call the tool that made it again"
    )


def expired_after(seconds: float) -> str:
    """Return the reason why content is gone after it was kept for `seconds`."""
    return f"it was kept for {seconds:g} s"


def check_size(size: int, settings: StoreSettings) -> None:
    """Raise ContentTooLarge if content of `size` bytes can never be stored."""
    quota = settings.max_bytes_per_owner
    if size > settings.max_bytes:
        limit, who, setting = settings.max_bytes, "the store holds", "store.max_bytes"
    elif quota is not None and size > quota:
        limit, who, setting = quota, "it holds for one owner", "store.max_bytes_per_owner"
    else:
        return
    raise ContentTooLarge(
        f"the content has {size:,} bytes, more than the {limit:,} that {who}", remedy=f"see {setting}"
    )
