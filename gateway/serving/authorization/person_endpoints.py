"""The endpoints that people's browsers call: `/authorize`, logging in, and the approval page.

Before somebody has logged in, nothing is kept for a browser: the request stays in the query of each page. What a person
reaches is shown to that person alone.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from secrets import token_hex
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gateway.config.authorization_settings import AuthorizationServerSettings
from gateway.core.fact_words import plain
from gateway.errors import StateUnavailable
from gateway.routing.replica_port import SharedUse
from gateway.serving.authorization import pages
from gateway.serving.authorization.approvals import Approval, digest
from gateway.serving.authorization.authorize_request import AuthorizeRequest, Place, RefusedRequest, checked_request
from gateway.serving.authorization.browsers import Browsers
from gateway.serving.authorization.company_login import CompanyLogin, LoginFailed, kept_claims
from gateway.serving.authorization.listeners import Listeners
from gateway.serving.authorization.passphrases import Attempts, is_passphrase
from gateway.serving.authorization.pending_requests import PendingDecision, PendingLogin, PendingRequests
from gateway.serving.authorization.people import PASSPHRASE, People, grant_of, is_principal
from gateway.serving.authorization.program_endpoints import Form, Malformed, form_of, parameters_of
from gateway.serving.authorization.provider import Provider
from gateway.serving.authorization.reach_words import reach_in_words
from gateway.serving.authorization.redirect_uris import destination
from gateway.serving.authorization.state import State
from gateway.serving.http import RepeatedLines, address_of

logger = logging.getLogger(__name__)

_HASHING_AT_ONCE = 2
_MOST_WAITING = 20
_LONGEST_NAME = 100
_LONGEST_PASSPHRASE = 1_000
_BEGIN_AGAIN = "Close this page, and begin again in the host."

Endpoint = Callable[[Request], Awaitable[Response]]


class PersonEndpoints:
    """`/authorize` and the pages below it. `upstreams` are the names of the upstreams at present.

    `claims` are those of the company that upstreams are told.
    """

    def __init__(
        self,
        settings: AuthorizationServerSettings,
        place: Place,
        people: People,
        provider: Provider,
        state: State,
        listeners: Listeners,
        upstreams: Callable[[], Iterable[str]],
        claims: Callable[[], Collection[str]],
        clock: Callable[[], float] = time.time,
        shared: Callable[[], SharedUse | None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._place = place
        self._people = people
        self._provider = provider
        self._state = state
        self._listeners = listeners
        self._upstreams = upstreams
        self._claims = claims
        self._clock = clock
        self._browsers = Browsers(is_secure=place.issuer.startswith("https:"))
        self._attempts = Attempts(shared=shared)
        self._hashing = anyio.CapacityLimiter(_HASHING_AT_ONCE)
        self._decisions = PendingRequests(state, PendingDecision, clock)
        self._lines = RepeatedLines(logger)
        oidc = settings.oidc
        self._company = (
            None
            if oidc is None
            else CompanyLogin(oidc, f"{place.issuer}/authorize/callback", PendingRequests(state, PendingLogin, clock))
        )
        self.authorize = self._answering(self._authorize)
        self.log_in = self._answering(self._log_in)
        self.company = self._answering(self._with_company)
        self.callback = self._answering(self._callback)
        self.ask = self._answering(self._ask)
        self.decide = self._answering(self._decide)

    async def _authorize(self, request: Request) -> Response:
        """Answer `GET /authorize`: who asks, and the form to log in."""
        asked = await self._checked(request.url.query)
        cookie = self._browsers.cookie(request) or self._browsers.new_cookie()
        return self._browsers.keep(self._login_page(asked, cookie), cookie)

    async def _log_in(self, request: Request) -> Response:
        """Answer `POST /authorize`, the form to log in."""
        asked = await self._checked(request.url.query)
        form, cookie = await self._own_form(request)
        if form.get("action") == "deny":
            return self._denied(asked)
        return await self._with_passphrase(asked, form, cookie, address_of(request.scope))

    async def _with_passphrase(self, asked: AuthorizeRequest, form: Form, cookie: str, address: str) -> Response:
        hashes = self._people.with_passphrase
        name = (form.get("name") or (next(iter(hashes)) if len(hashes) == 1 else ""))[:_LONGEST_NAME]
        seconds = self._attempts.wait(name)
        if seconds or self._hashing.statistics().tasks_waiting >= _MOST_WAITING:
            seconds = max(1, seconds)
            words = f"Too many attempts. Try again in {seconds} s."
            answer = self._login_page(asked, cookie, words, status=429)
            answer.headers["Retry-After"] = str(seconds)
            return answer
        self._attempts.failed(name)
        given = (form.get("passphrase") or "")[:_LONGEST_PASSPHRASE]
        check = partial(is_passphrase, given, hashes.get(name))
        if not await to_thread.run_sync(check, limiter=self._hashing):
            # A name that nobody has is not logged, nor told: it may be the passphrase, in the wrong field.
            known = name if name in hashes else ""
            if known:
                await self._attempts.tell(known)
            self._lines.warn(f"name {known}", f"a wrong passphrase for {known or 'somebody unknown'}")
            self._listeners.login_refused(known, address, "a wrong passphrase")
            return self._login_page(asked, cookie, "The name or the passphrase is wrong.", status=403)
        self._attempts.succeeded(name)
        return await self._to_decide(PendingDecision(digest(cookie), asked.query, name, PASSPHRASE))

    async def _with_company(self, request: Request) -> Response:
        """Answer `GET /authorize/company`: send the browser to the company's provider."""
        asked = await self._checked(request.url.query)
        if self._company is None:
            raise RefusedRequest(f"Nobody logs in here. {_BEGIN_AGAIN}")
        cookie = self._browsers.cookie(request) or self._browsers.new_cookie()
        return self._browsers.keep(_to(await self._company.begin(cookie, asked.query)), cookie)

    async def _callback(self, request: Request) -> Response:
        """Answer `GET /authorize/callback`, to which the company's provider sends the browser."""
        if self._company is None:
            raise RefusedRequest(f"Nobody logs in here. {_BEGIN_AGAIN}")
        issuer = self._company.settings.issuer
        cookie = self._browsers.cookie(request)
        principal, query, claims = await self._company.complete(cookie, parameters_of(request.url.query))
        asked = await self._checked(query)
        if cookie is None or not is_principal(principal) or self._people.reach_of(principal, issuer) is None:
            self._lines.warn(
                "company", f"{plain(principal)} may not log in: see access.authorization_server.oidc.people"
            )
            self._listeners.login_refused(plain(principal), address_of(request.scope), "not one of oidc.people")
            raise LoginFailed(f"{plain(principal)} may not use this gateway.")
        return await self._to_decide(
            PendingDecision(digest(cookie), asked.query, principal, issuer, kept_claims(claims, self._claims()))
        )

    async def _to_decide(self, decision: PendingDecision) -> Response:
        return _to(f"{self._place.path}/authorize/approve/{await self._decisions.put(decision)}")

    async def _ask(self, request: Request) -> Response:
        """Answer `GET /authorize/approve/...`: what somebody is asked to approve."""
        cookie = self._browsers.cookie(request) or ""
        decision = _found(await self._decisions.find(request.path_params["key"], cookie))
        asked = await self._checked(decision.query)
        reach = self._people.reach_of(decision.principal, decision.login)
        if reach is None:
            raise RefusedRequest("You may not use this gateway any more.")
        reached = reach_in_words(grant_of(reach), self._upstreams(), reach.toolset)
        return self._approval_page(asked, decision.principal, cookie, reached)

    async def _decide(self, request: Request) -> Response:
        """Answer `POST /authorize/approve/...`, the decision."""
        form, cookie = await self._own_form(request)
        key = request.path_params["key"]
        _found(await self._decisions.find(key, cookie))  # whoever else knows the address does not end it
        decision = _found(await self._decisions.take(key, cookie))
        asked = await self._checked(decision.query)
        if form.get("action") != "approve" or self._people.reach_of(decision.principal, decision.login) is None:
            return self._denied(asked)
        now = self._clock()
        approval = Approval(
            id=token_hex(6),
            client=asked.client.id,
            client_name=_name_of(asked),
            redirect=destination(asked.redirect_uri).words,
            principal=decision.principal,
            login=decision.login,
            resource=asked.resource,
            scope=" ".join(asked.scopes),
            created=now,
            used=now,
            expires=now + self._settings.approval_lifetime,
            claims=decision.claims,
        )
        code = await self._state.approve(approval, asked.redirect_uri, asked.challenge)
        self._listeners.tell(approval, "approved")
        logger.info("%s approved %s, which goes to %s", approval.principal, approval.client_name, approval.redirect)
        return _to(asked.answer(self._place.issuer, ("code", code)))

    def _denied(self, asked: AuthorizeRequest) -> Response:
        return _to(asked.answer(self._place.issuer, ("error", "access_denied")))

    async def _checked(self, query: str) -> AuthorizeRequest:
        return await checked_request(query, self._provider, self._place)

    async def _own_form(self, request: Request) -> tuple[Form, str]:
        """Return a form that was made for this browser, and its cookie. Raises RefusedRequest."""
        form = await form_of(request)
        cookie = self._browsers.cookie(request)
        if cookie is None or not self._browsers.is_own_form(request, form.get("csrf")):
            raise RefusedRequest(f"This form was not made for this browser, or is too old. {_BEGIN_AGAIN}")
        return form, cookie

    def _login_page(self, asked: AuthorizeRequest, cookie: str, fault: str = "", status: int = 200) -> Response:
        people, company = self._people.with_passphrase, self._company
        key = self._browsers.form_key(cookie)
        body = [pages.facts(_facts(asked)), _caution(asked)]
        if fault:
            body.append(pages.paragraph(fault, "fault"))
        if people:
            named = pages.field("name", "Your name", "text", "username") if len(people) > 1 else ""
            fields = named + pages.field("passphrase", "Passphrase", "password", "current-password")
            body.append(pages.form(key, fields, [("login", "Log in")]))
        if company is not None:
            # A link, because browsers hold each redirect after a form to the page's policy, and the provider may have
            # several.
            address = f"{self._place.path}/authorize/company?{asked.query}"
            body.append(pages.link(address, f"Continue with {company.settings.name}"))
        body.append(pages.form(key, "", [("deny", "Cancel")], is_main=False))
        title = f"{_name_of(asked)} wants to use your tools"
        return pages.page(self._place.name, title, "".join(body), status, _leads_to(asked))

    def _approval_page(self, asked: AuthorizeRequest, principal: str, cookie: str, reach: Sequence[str]) -> Response:
        until = datetime.fromtimestamp(self._clock() + self._settings.approval_lifetime, UTC)
        body = [
            pages.facts([*_facts(asked), ("You are", principal)]),
            pages.listing("It will reach, as you", reach or ["nothing at present"]),
            pages.listing("It also asks for", asked.scopes[1:]) if asked.scopes[1:] else "",
            _caution(asked),
            pages.form(self._browsers.form_key(cookie), "", [("approve", "Approve"), ("deny", "Deny")]),
            pages.paragraph(
                f"Until {until:%d %B %Y}. To end it earlier: mcp-gateway access revoke, or remove the connection in "
                f"the host.",
                "end",
            ),
        ]
        title = f"Let {_name_of(asked)} use your tools?"
        return pages.page(self._place.name, title, "".join(body), forms_to=_leads_to(asked))

    def _answering(self, endpoint: Endpoint) -> Endpoint:
        """Answer whatever goes wrong with a page."""

        async def answered(request: Request) -> Response:
            try:
                return await endpoint(request)
            except RefusedRequest as refused:
                return self._fault_page("This request cannot be answered", str(refused), 400, refused)
            except Malformed as error:
                return self._fault_page("This request cannot be answered", f"{error}.", 400)
            except LoginFailed as error:
                logger.warning("a login with the company's account failed: %s", error)
                return self._fault_page("You are not logged in", str(error), 403)
            except StateUnavailable as error:
                return self._fault_page("Not possible at present", f"{error.message}. Try again later.", 503)

        return answered

    def _fault_page(self, title: str, words: str, status: int, refused: RefusedRequest | None = None) -> Response:
        body = pages.paragraph(words, "fault")
        if refused is not None and (asked := refused.request) is not None:
            back = asked.answer(self._place.issuer, ("error", refused.error), ("error_description", words))
            body += pages.link(back, f"Back to {destination(asked.redirect_uri).words}")
        return pages.page(self._place.name, title, body, status)


def _found(decision: PendingDecision | None) -> PendingDecision:
    """Return the decision that this browser is asked for, whoever else knows its address. Raises RefusedRequest."""
    if decision is None:
        raise RefusedRequest(f"This page is for another browser, or too old. {_BEGIN_AGAIN}")
    return decision


def _name_of(asked: AuthorizeRequest) -> str:
    """Return what the host calls itself; without a name, where the answer goes."""
    return asked.client.name or destination(asked.redirect_uri).words


def _facts(asked: AuthorizeRequest) -> list[tuple[str, str]]:
    certain = [("Comes from", urlsplit(asked.client.id).netloc)] if asked.client.documented else []
    return [*certain, ("Calls itself", _name_of(asked)), ("Goes to", destination(asked.redirect_uri).words)]


def _caution(asked: AuthorizeRequest) -> str:
    leads_to = destination(asked.redirect_uri)
    if leads_to.is_local:
        return pages.paragraph("Any program on your device could ask like this. Go on only if you began it.", "note")
    if asked.client.documented and urlsplit(asked.client.id).netloc == leads_to.words:
        return pages.paragraph("Go on only if you began this.", "note")
    return pages.paragraph(
        f"The name is what it says of itself. Go on only if you began this, and trust {leads_to.words}.", "note"
    )


def _leads_to(asked: AuthorizeRequest) -> Sequence[str]:
    """Return where the page's forms may lead: to the redirect URI, and wherever that sends the browser on to."""
    return ["https:", destination(asked.redirect_uri).policy]


def _to(address: str) -> Response:
    """Send the browser on, with GET."""
    answer = RedirectResponse("/", 303, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
    answer.headers["Location"] = address  # as it is: RedirectResponse would quote it once more
    return answer
