"""A store, links with a fixed key and clock, and the whole HTTP side around them, asked in process."""

from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from gateway.config.content_settings import ContentSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.links.base_url import Bases
from gateway.content.links.links import Links
from gateway.content.store import MemoryStore
from gateway.serving.content.routes import content_routes
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app
from tests.servers.downstream_service import SampleService

HERE = "http://127.0.0.1:8484"


class Clock:
    """Seconds since 1970, as the test says."""

    now = 1_800_000_010.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(StoreSettings(max_bytes=10_000_000, expires=60), key=b"k" * 32)


@pytest.fixture
def links(clock) -> Links:
    links = Links(1_000, clock=clock)
    links.serve_at(HERE, b"a key of at least 16 characters")
    return links


@pytest.fixture
def client(store, links):
    """`with client(...)`: the HTTP side; `http` and `content` are settings, `token` None for a gateway without one."""

    @contextmanager
    def opened(
        token="sesame", *, http=None, content=None, root_path="", public_url=None, peer="127.0.0.1", store=store
    ):
        settings = HttpSettings(token=token, **(http or {}))
        bases = Bases(root_path, settings.trusted_proxies)
        routes = content_routes(store, links, ContentSettings(**(content or {})))
        sample, identity = SampleService(), Identity("sample", "1.0")
        app = http_app(sample, settings, identity, content=routes, bases=bases, public_url=public_url)
        with TestClient(app, base_url=HERE, client=(peer, 50_000)) as asked:
            yield asked

    return opened


@pytest.fixture
def token() -> dict[str, str]:
    return {"Authorization": "Bearer sesame"}
