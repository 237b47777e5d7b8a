"""Call an operation: send its request, follow redirects within the server, and make its answer a result."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx2

from gateway.config.secrets import HIDDEN
from gateway.core.fact_words import size_words
from gateway.core.wording import failure_text
from gateway.errors import InvalidRequest
from gateway.system.response_body import body_of
from gateway.upstream.openapi.api import Api
from gateway.upstream.openapi.operations import joined, origin
from gateway.upstream.openapi.requests import ApiRequest, build_request
from gateway.upstream.openapi.results import ApiAnswer, redirected, refused, result_of
from gateway.upstream.openapi.tools import ApiTool
from gateway.upstream.transports.clients import longest_call
from gateway.upstream.transports.failures import Subject, failure_of
from gateway.upstream.transports.send_authorized import send_request

logger = logging.getLogger(__name__)

_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


async def call_operation(
    api: Api, tool: ApiTool, arguments: Mapping[str, Any], client: httpx2.AsyncClient, subject: Subject
) -> dict[str, Any]:
    """Return the result of a call. Whatever goes wrong between here and the API is a result for the model too.

    Raises LoginRequired and LoginFailed.
    """
    settings = subject.settings
    try:
        request = build_request(api.document, tool, arguments, api.base_url, settings.operations.query)
    except InvalidRequest as error:
        return refused(f"{tool.operation.name} was not called: {error.message}")
    try:
        answer = await _answered(request, client, subject)
    except (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError) as error:
        failure = failure_of(error, subject)
        return refused(failure_text(f"{tool.operation.words} failed: {failure.message}", failure.remedy))
    if answer is None:
        most = size_words(settings.max_message_bytes)
        return refused(f"{tool.operation.words} failed: the answer is larger than {most} (max_message_bytes)")
    if answer.status in _REDIRECTS and (location := answer.headers.get("location")):
        return redirected(answer, joined(answer.url, location))
    return result_of(answer, subject.name, tool.operation.name, api.credentials_hint)


async def _answered(request: ApiRequest, client: httpx2.AsyncClient, subject: Subject) -> ApiAnswer | None:
    """Send a request, and follow redirects within its server. Return None if the answer is too large."""
    seconds = longest_call(subject.settings)
    for _ in range(_MOST_REDIRECTS + 1):
        sent = client.build_request(
            request.method,
            request.url,
            headers={name.encode("ascii"): value.encode("latin-1") for name, value in request.headers.items()},
            content=request.content,
            files=list(request.parts) if request.parts is not None else None,
            timeout=httpx2.Timeout(seconds, connect=min(seconds, subject.settings.timeout.start)),
        )
        response = await send_request(subject.tokens, partial(client.send, stream=True), sent)
        try:
            followed = _next(request, response)
            if followed is None:
                body = await body_of(response, subject.settings.max_message_bytes)
                headers = {name.lower(): _hidden(value, subject) for name, value in response.headers.items()}
                if body is None:
                    return None
                return ApiAnswer(response.status_code, headers, body, request.url, request.method)
            request = followed
        finally:
            await response.aclose()
    raise httpx2.TooManyRedirects("one redirect after another")


def _hidden(value: str, subject: Subject) -> str:
    """Return a header without what `operations.query` adds to each request: APIs repeat it in addresses."""
    for secret in subject.settings.operations.query.values():
        if secret and quote(secret, safe="") != secret:
            value = value.replace(quote(secret, safe=""), HIDDEN)
    return subject.secrets.hide(value)


def _next(request: ApiRequest, response: httpx2.Response) -> ApiRequest | None:
    """Return the request that a redirect leads to; None if it is not one, or leads to another server."""
    location = response.headers.get("location")
    if response.status_code not in _REDIRECTS or not location:
        return None
    there = joined(request.url, location)
    if there is None or origin(there) != origin(request.url):
        return None
    if response.status_code in (307, 308) or request.method in ("GET", "HEAD"):
        return ApiRequest(request.method, there, request.headers, request.content, request.parts)
    headers = {name: value for name, value in request.headers.items() if name != "content-type"}
    return ApiRequest("GET", there, headers)
