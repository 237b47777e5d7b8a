"""The client of the suite's OAuth scenarios (`auth/*`): the gateway's upstream side, with somebody who logs in.

    MCP_CONFORMANCE_SCENARIO=<name> python -m tests.conformance.oauth_client <url of the suite's server>

The browser of whoever logs in is a GET that does not follow the last redirect: there is nobody at its address.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx2

from gateway.config.upstream_auth_settings import UpstreamAuthSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.errors import GatewayError, LoginRequired
from gateway.upstream.authorization.logins import UpstreamLogins
from gateway.upstream.authorization.ports import Credentials
from gateway.upstream.authorization.vault import MemoryVault
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.connection import connect
from gateway.upstream.connection.deadlines import Deadline
from gateway.upstream.connection.host_requests import HostRequests
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.redaction import Secrets

PATIENCE = 50
REDIRECT = "http://127.0.0.1:9876/oauth/callback"
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
LOGINS = 5
"""More than the gateway may want of anybody: it has to stop before."""


class OwnTokens:
    """The tokens of the one person here (`ports.TokenSource`)."""

    def __init__(self, logins: UpstreamLogins) -> None:
        self._logins = logins

    async def token(self) -> Credentials | None:
        return await self._logins.token("suite", "local")

    async def challenged(
        self, sent: Credentials | None, status: int, www_authenticate: Sequence[str]
    ) -> Credentials | None:
        return await self._logins.challenged("suite", "local", sent, status, www_authenticate)


async def use(settings: UpstreamSettings, revision: str, subject_token: str | None) -> None:
    """List the tools and call each, with as many logins as the gateway wants."""
    logins = UpstreamLogins(MemoryVault(), lambda _: settings, subject_of=lambda _: subject_token)
    subject = Subject("suite", settings, Secrets(settings), OwnTokens(logins))
    for _ in range(LOGINS):
        try:
            await served(subject, settings, revision)
        except LoginRequired as required:
            print(required, file=sys.stderr)
            await log_in(logins)
        else:
            return
    raise SystemExit("the gateway wants ever more logins")


async def served(subject: Subject, settings: UpstreamSettings, revision: str) -> None:
    """Open a session, and use it until something is missing."""
    outcome: GatewayError | None = None
    host_requests = HostRequests(settings.timeout.answer)
    async with connect("http", subject, ClientIdentity(), host_requests, ignored, lambda _: None) as session:
        try:
            await session.open("modern" if revision in MODERN_REVISIONS else "handshake")
            listed = await session.request("tools/list", {}, Deadline(settings.timeout))
            for tool in listed["tools"]:
                arguments = {"name": tool["name"], "arguments": {}}
                await session.request("tools/call", arguments, Deadline(settings.timeout))
        except GatewayError as error:
            outcome = error
    if outcome is not None:
        raise outcome


async def ignored(method: str, params: Any) -> None:
    """Nothing that the upstream sends by itself matters here."""


async def log_in(logins: UpstreamLogins) -> None:
    """Open the page of the login, and come back."""
    pending = await logins.begin("suite", "local", REDIRECT)
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(pending.url)
        while answer.next_request is not None and not str(answer.next_request.url).startswith(REDIRECT):
            answer = await browser.send(answer.next_request)
    back = httpx2.URL(answer.headers["location"])
    await logins.complete(pending.state, dict(back.params), principal="local")


def auth(scenario: str, context: dict[str, Any], folder: Path) -> UpstreamAuthSettings:
    """What somebody would write into the configuration who knows what the suite says."""
    known: dict[str, Any] = {"client_metadata_url": CLIENT_DOCUMENT}
    if scenario.startswith("auth/client-credentials"):
        known["grant"] = "client_credentials"
    if scenario == "auth/wif-jwt-bearer":
        file = folder / "workload-token"
        file.write_text(context["valid_jwt"], "ascii")
        known |= {"grant": "jwt_bearer", "assertion_file": file}
    if scenario == "auth/enterprise-managed-authorization":
        known["grant"] = "token_exchange"
        known["exchange"] = {
            "token_endpoint": context["idp_token_endpoint"],
            "client_id": context["idp_client_id"],
            "subject": "id_token",
            "request": "id_jag",
        }
    names = {"client_id": "client_id", "client_secret": "client_secret", "private_key_pem": "private_key"}
    known |= {ours: context[theirs] for theirs, ours in names.items() if theirs in context}
    if "signing_algorithm" in context:
        known["signing_algorithm"] = context["signing_algorithm"]
    return UpstreamAuthSettings(**known)


def main() -> None:
    """Read the command line and what the suite says in the environment."""
    url = sys.argv[1]
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    revision = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))

    async def bounded(settings: UpstreamSettings) -> None:
        with anyio.fail_after(PATIENCE):
            await use(settings, revision, context.get("idp_id_token"))

    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        settings = UpstreamSettings(url=url, transport="http", auth=auth(scenario, context, Path(folder)))
        try:
            anyio.run(bounded, settings)
        except GatewayError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
