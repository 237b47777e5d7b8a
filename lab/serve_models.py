"""The stand-ins of model APIs on a port of their own, in a thread: for the lab, and for tests of whole programs."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from gateway.testing.model_apis.server import listen

_ENDS_WITHIN = 180.0
"""Seconds for requests that are being answered when the port is closed."""


@contextmanager
def serve_models(app: ASGIApp) -> Generator[str]:
    """Serve on loopback while this is open; gives the address, as in `http://127.0.0.1:4711`."""
    with listen() as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(_ENDS_WITHIN)
