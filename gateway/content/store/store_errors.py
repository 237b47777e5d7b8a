"""What every store says when content is not there, or cannot be kept: one wording for all of them."""

from gateway.config.schema import StoreSettings
from gateway.errors import ContentTooLarge, ExpiredHandle, UnknownHandle

EVICTED = "it had to make room for newer content"
LOST = "its bytes are no longer in the store"
_SHOWN = 80


def unknown(handle: str) -> UnknownHandle:
    """The same words whether it never was or is someone else's."""
    return UnknownHandle(f"there is no content with the handle {handle[:_SHOWN]!r}", remedy="copy the handle exactly")


def gone(handle: str, why: str) -> ExpiredHandle:
    """It was there, and `why` it is not any more."""
    return ExpiredHandle(
        f"the content of {handle[:_SHOWN]!r} is gone: {why}", remedy="call the tool that made it again"
    )


def expired_after(seconds: float) -> str:
    """Why content is gone that was kept for so many seconds."""
    return f"it was kept for {seconds:g} s"


def check_size(size: int, settings: StoreSettings) -> None:
    """Raises ContentTooLarge when content of so many bytes can never be kept."""
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
