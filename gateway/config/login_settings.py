"""The settings of logins to upstreams."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section


class LoginSettings(Section):
    """Logins to upstreams (OAuth): their tokens are kept in a sealed file in the gateway's state folder."""

    key: Annotated[str, Field(min_length=16)] | None = None
    """The key that seals them, at least 16 characters; omitted: created once, and kept in the system's keyring."""
