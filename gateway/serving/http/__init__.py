"""HTTP server shared by the MCP endpoints and the model proxy: access checks, connection limits, start and stop."""

from gateway.serving.http.allowed import ANY, LOOPBACK, Allowed, RefusedHosts
from gateway.serving.http.http_server import Listening, TcpListener, serve
from gateway.serving.http.limits import Limits
from gateway.serving.http.repeated import RepeatedLines
from gateway.serving.http.tls_files import TlsFiles
from gateway.serving.http.tokens import KNOWN, STANDING, WrongTokens, address_of

__all__ = [
    "ANY",
    "KNOWN",
    "LOOPBACK",
    "STANDING",
    "Allowed",
    "Limits",
    "Listening",
    "RefusedHosts",
    "RepeatedLines",
    "TcpListener",
    "TlsFiles",
    "WrongTokens",
    "address_of",
    "serve",
]
