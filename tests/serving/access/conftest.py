"""An identity provider on the loopback."""

from collections.abc import AsyncGenerator

import pytest

from tests.servers.identity_provider import IdentityProvider


@pytest.fixture
async def provider() -> AsyncGenerator[IdentityProvider]:
    async with IdentityProvider().running() as running:
        yield running
