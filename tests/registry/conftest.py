"""A registry on the loopback, and clients of it whose clock the tests set."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from gateway.config.registry_settings import RegistrySettings
from gateway.registry.cache import AnswerCache
from gateway.registry.client import RegistryClient
from tests.servers.registry_server import Registry, running_registry

Connect = Callable[..., RegistryClient]


@pytest.fixture
def registry() -> Generator[Registry]:
    with running_registry() as one:
        yield one


class Clock:
    """The seconds that a client reads."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connect(registry: Registry, clock: Clock, tmp_path: Path) -> Connect:
    """Return clients of the registry with one cache."""

    def client(**settings: Any) -> RegistryClient:
        known = RegistrySettings.model_validate({"url": registry.base, "timeout": 30, **settings})
        return RegistryClient(known, AnswerCache(tmp_path / "cache"), clock)

    return client
