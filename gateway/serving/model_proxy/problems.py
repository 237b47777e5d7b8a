"""The proxy's own errors: one table, with the shape that clients of each model API expect."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.responses import Response


class ProxyProblem(NamedTuple):
    """An error of the proxy itself: its status, and each API's name for it."""

    status: int
    openai: str
    anthropic: str
    gemini: str


BAD_PATH = ProxyProblem(400, "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT")
NO_TOKEN = ProxyProblem(401, "invalid_request_error", "authentication_error", "UNAUTHENTICATED")
FOREIGN_ORIGIN = ProxyProblem(403, "invalid_request_error", "permission_error", "PERMISSION_DENIED")
WRONG_DIALECT = ProxyProblem(404, "invalid_request_error", "not_found_error", "NOT_FOUND")
TOO_LARGE = ProxyProblem(413, "invalid_request_error", "request_too_large", "INVALID_ARGUMENT")
FOREIGN_HOST = ProxyProblem(421, "invalid_request_error", "permission_error", "PERMISSION_DENIED")
OVERLOADED = ProxyProblem(503, "server_error", "overloaded_error", "UNAVAILABLE")
UNREACHABLE = ProxyProblem(502, "api_error", "api_error", "UNAVAILABLE")
TOO_SLOW = ProxyProblem(504, "api_error", "timeout_error", "DEADLINE_EXCEEDED")


def problem_response(
    problem: ProxyProblem, message: str, dialect: str | None, retry_after: int | None = None
) -> Response:
    """Return the error as a client of this dialect expects it; in OpenAI's shape if the dialect is unknown.

    `retry_after` is the number of seconds after which the client may try again.
    """
    body = json.dumps(_shape(problem, f"mcp-gateway proxy: {message}", dialect), ensure_ascii=False)
    # The rest of a refused request is not read, so the connection cannot be reused.
    headers = {"Connection": "close", **({} if retry_after is None else {"Retry-After": str(retry_after)})}
    return Response(body, problem.status, headers, media_type="application/json")


def _shape(problem: ProxyProblem, message: str, dialect: str | None) -> Mapping[str, Any]:
    match dialect:
        case "anthropic_messages":
            return {"type": "error", "error": {"type": problem.anthropic, "message": message}}
        case "gemini":
            return {"error": {"code": problem.status, "message": message, "status": problem.gemini}}
        case "ollama":
            return {"error": message}
        case _:
            return {"error": {"message": message, "type": problem.openai, "param": None, "code": None}}
