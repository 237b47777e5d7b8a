"""Requests of tests to servers of this machine: no proxy of the environment is asked.

`urllib.request.urlopen` keeps the proxies of its first call for the whole process, so that a test that sets one would
send the requests of later tests to it.
"""

import urllib.request
from typing import Any


def open_url(request: str | urllib.request.Request, timeout: float, *handlers: urllib.request.BaseHandler) -> Any:
    """Send a request to a server of this machine, and return its answer, which is to be closed."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), *handlers).open(request, timeout=timeout)
