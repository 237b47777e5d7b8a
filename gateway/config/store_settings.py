"""`[store]`: where content is kept."""

from typing import Annotated

from pydantic import Field, field_validator

from gateway.config.locations import location
from gateway.config.section import Section
from gateway.config.setting_types import Bytes, Seconds
from gateway.core.model.quantities import Duration


class StoreSettings(Section):
    """The store for content that a host cannot show."""

    url: str = "memory://"
    """`memory://`, `file:///folder`, `s3://bucket/prefix?endpoint=...&region=...`, `gs://...` or `az://...`."""
    max_bytes: Bytes = 256 * 1024 * 1024
    """Maximum size of all content; the least recently used is evicted."""
    max_bytes_per_owner: Bytes | None = None
    """Maximum size of one principal's content; its own least recently used is evicted."""
    expires: Annotated[Duration, Field(gt=0, le=366 * 86_400)] = 3_600.0
    """Seconds for which content is kept after it was last stored."""
    timeout: Seconds = 30.0
    """Seconds for one answer of the store, or for one piece of a stream."""
    key: str | None = None
    """The key for making handles, the same for all gateways on one store; omitted: one is created and kept there."""

    @field_validator("url")
    @classmethod
    def _is_a_place(cls, url: str) -> str:
        location(url)
        return url

    @field_validator("key")
    @classmethod
    def _cannot_be_guessed(cls, key: str | None) -> str | None:
        if key is not None and len(key.strip()) < 16:
            raise ValueError("is too short: give 16 characters or more that cannot be guessed, or leave it out")
        return key
