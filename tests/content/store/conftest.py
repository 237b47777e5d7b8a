"""Stores of every kind, on a clock that goes when it is told to; S3 is moto's server, in a thread of this process."""

import logging
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from gateway.config.store_settings import StoreSettings
from gateway.content.store import make_store

KINDS = ("memory", "file", "s3")


class Clock:
    """A clock that goes when it is told to; objects bear the time of their real writing, so it is behind."""

    def __init__(self) -> None:
        self.now = float(int(time.time()) - 1_000)

    def __call__(self) -> float:
        return self.now


class Kind(NamedTuple):
    """A kind of store: each call of `make` opens the same place anew."""

    name: str
    url: str
    clock: Clock

    def make(self, **settings: Any) -> Any:
        return make_store(StoreSettings(url=self.url, **settings), clock=self.clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def s3() -> Iterator[Callable[..., str]]:
    """Makes a bucket, and gives the url of a prefix in it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()

    def make(bucket: str | None = None) -> str:
        bucket = bucket or f"bucket-{uuid.uuid4().hex[:12]}"
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(
                f"PUT /{bucket} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 0\r\nConnection: close\r\n"
                "Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request\r\n\r\n".encode()
            )
            answer = b""
            while part := connection.recv(65_536):
                answer += part
        assert answer.split()[1] == b"200", answer
        return f"s3://{bucket}/some/prefix?endpoint=http://{host}:{port}&region=us-east-1"

    yield make
    server.stop()


@pytest.fixture
def credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "never-shown-to-anybody")


@pytest.fixture(params=KINDS)
def kind(request, tmp_path, clock) -> Kind:
    return kind_named(request.param, request, tmp_path, clock)


@pytest.fixture(params=KINDS[1:])
def lasting(request, tmp_path, clock) -> Kind:
    """A kind of store that outlives the process."""
    return kind_named(request.param, request, tmp_path, clock)


def kind_named(name: str, request, tmp_path, clock) -> Kind:
    if name == "s3":
        request.getfixturevalue("credentials")
        return Kind(name, request.getfixturevalue("s3")(), clock)
    return Kind(name, "memory://" if name == "memory" else (tmp_path / "store").as_uri(), clock)
