"""Calibration of the gateway's hosts: while it is open, the hosts to be calibrated are offered two more tools."""

import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.effects import MediaWork
from gateway.core.model.json_values import is_list
from gateway.core.model.wire import text_result
from gateway.core.profiles.calibrate_profile import (
    PARTS,
    REPORT_TOOL,
    SHOW_TOOL,
    TOOLS,
    Calibrated,
    calibrated_profile,
    conclusions,
    is_meant,
)
from gateway.core.profiles.profile import Profile, ProfileSource
from gateway.core.wording import failure_text
from gateway.errors import GatewayError, InvalidRequest
from gateway.routing.calibration import wording
from gateway.routing.calibration.declarations import DECLARED
from gateway.routing.calibration.session import LENGTH, CalibrationSession

logger = logging.getLogger(__name__)

_SESSIONS = 32
"""Maximum number of hosts remembered at a time. Clients choose their own names, so this needs a bound."""

_CODE = re.compile(rf"(?<!\d)\d{{{LENGTH}}}(?!\d)")
_LONGEST_REPORT = 10_000


class KeptProfile(NamedTuple):
    """The place where a profile was saved, and whether its host uses it: another may be chosen explicitly."""

    place: str
    used: bool


@dataclass(frozen=True)
class HostWorkspace:
    """Functions of the surrounding gateway that a calibration uses.

    `base_of`: the profile that a measured one extends if the profile of this name is in use. `model_of`: the model
    behind a host, if known. `keep`: save a profile under this name and use it for this caller; raises GatewayError.
    `changed`: notify hosts that their tools have changed.
    """

    base_of: Callable[[str], Profile]
    model_of: Callable[[Caller], str | None]
    keep: Callable[[str, ProfileSource, Caller], Awaitable[KeptProfile]]
    changed: Callable[[], None]
    today: Callable[[], date]
    clock: Callable[[], float]
    """Seconds since 1970."""


@dataclass(frozen=True)
class Finished:
    """Outcome of a host's calibration: a profile and its findings, or a problem."""

    profile: str | None = None
    place: str | None = None
    used: bool = False
    extends: str | None = None
    learned: tuple[str, ...] = ()
    problem: str | None = None


@dataclass
class _Host:
    client_name: str
    client_version: str | None
    session: CalibrationSession = field(default_factory=CalibrationSession)
    finished: Finished | None = None


class Calibration:
    """The two calibration tools, and the hosts that are being calibrated with them."""

    def __init__(self, media: MediaWork, surroundings: HostWorkspace) -> None:
        self._media = media
        self._around = surroundings
        self._until: float | None = None
        self._host: str | None = None
        self._hosts: OrderedDict[tuple[str | None, ...], _Host] = OrderedDict()

    @property
    def is_open(self) -> bool:
        """Whether hosts may calibrate now."""
        return self._until is not None and self._around.clock() < self._until

    def open(self, until: float, host: str | None = None) -> None:
        """Offer the tools until this time, in seconds since 1970; only to `host`, if given.

        Earlier reports of hosts are kept if the calibration was last opened with the same arguments.
        """
        again = (until, host) == (self._until, self._host)
        self._until, self._host = until, host
        if not again:
            self._hosts.clear()
            self._around.changed()

    def close(self) -> None:
        """Stop offering the tools."""
        if self._until is not None:
            self._until = None
            self._around.changed()

    def tools(self, caller: Caller, profile: Profile) -> Sequence[dict[str, Any]]:
        """The calibration tools; none if the caller is not to be calibrated, or already is."""
        if not self._is_for(caller, profile):
            return ()
        known = self._hosts.get(_key(caller))
        return () if known is not None and known.finished is not None else DECLARED

    def _is_for(self, caller: Caller, profile: Profile) -> bool:
        return self.is_open and is_meant(self._host, caller.client_name, (profile.name, *profile.lineage[:-2]))

    def progress(self) -> dict[str, Any]:
        """The progress of each host, as JSON."""
        return {
            "open": self.is_open,
            "host": self._host,
            "hosts": [_progress_of(host) for host in self._hosts.values()],
        }

    async def call(self, tool: str, arguments: Mapping[str, Any], caller: Caller, profile: Profile) -> dict[str, Any]:
        """Return a calibration tool's raw result. It must reach the host unchanged: the host is being measured."""
        try:
            if tool not in TOOLS or not self._is_for(caller, profile):
                raise InvalidRequest("this gateway is not being calibrated", remedy="run `mcp-gateway calibrate`")
            host = self._hosts.setdefault(_key(caller), _Host(caller.client_name or "", caller.client_version))
            while len(self._hosts) > _SESSIONS:
                self._hosts.popitem(last=False)
            if tool == SHOW_TOOL:
                return await self._show(host, arguments)
            return text_result(await self._report(host, arguments, caller, profile))
        except GatewayError as error:
            return text_result(failure_text(plain(error.message, 1_000), error.remedy), is_error=True)

    async def _show(self, host: _Host, arguments: Mapping[str, Any]) -> dict[str, Any]:
        part = _part_in(arguments) or host.session.next_part
        if part is None or host.finished is not None:
            return text_result(wording.WAIT if host.finished is None else wording.OVER)
        from gateway.routing.calibration.parts import result_of  # draws with Pillow, which most gateways never need

        return await result_of(part, host.session.show(part), self._media)

    async def _report(self, host: _Host, arguments: Mapping[str, Any], caller: Caller, profile: Profile) -> str:
        session, codes = host.session, _codes_in(arguments)
        if isinstance(model := arguments.get("model"), str) and model.strip():
            session.model = plain(model, 100)
        if host.finished is not None:
            return wording.OVER
        if session.phase == "waiting":
            if arguments.get("after_user_message") is not True:
                return wording.WAIT
            session.report_later(codes)
            return await self._finish(host, caller, profile)
        if arguments.get("after_user_message") is True:
            return wording.not_yet(len(session.left))
        count = session.report(codes)
        if count is None:
            return wording.NOTHING_SHOWN
        if session.left:
            return wording.go_on(count, len(session.left))
        # A model that cannot even read the text is not asked again.
        if session.has_more_to_see and session.sight.is_trusted:
            return wording.wait_for_user(count)
        return await self._finish(host, caller, profile)

    async def _finish(self, host: _Host, caller: Caller, profile: Profile) -> str:
        sight = host.session.sight
        if not sight.is_trusted:
            host.finished = Finished(problem="the model did not report the code in plain text")
            logger.warning("%s was not calibrated: %s", plain(host.client_name, 100), host.finished.problem)
            return wording.REFUSED
        base = self._around.base_of(profile.name)
        model = self._around.model_of(caller)
        who = Calibrated(host.client_name, host.client_version, model, host.session.model, self._around.today())
        source = calibrated_profile(who, sight, base)
        learned = tuple(words for words, _ in conclusions(sight, base))
        try:
            place, used = await self._around.keep(who.profile_name, source, caller)
        except GatewayError as error:
            host.finished = Finished(learned=learned, problem=str(error))
            logger.warning("the profile of %s was not kept: %s", plain(host.client_name, 100), error)
            return wording.unsaved(str(error))
        host.finished = Finished(who.profile_name, place, used, base.name, learned)
        logger.info("%s was calibrated: profile %s, in %s", plain(host.client_name, 100), who.profile_name, place)
        self._around.changed()
        return wording.finished(who.profile_name, place, list(learned), used=used)


def _key(caller: Caller) -> tuple[str | None, ...]:
    """Return a key for the host rather than its session: some hosts open a new session for every request."""
    return (caller.client_name, caller.client_version, caller.principal)


def _part_in(arguments: Mapping[str, Any]) -> str | None:
    number = arguments.get("part")
    if number is None:
        return None
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:4])
    if isinstance(number, bool) or not isinstance(number, int | float) or number not in range(1, len(PARTS) + 1):
        raise InvalidRequest("there is no such part", remedy=f"give a number from 1 to {len(PARTS)}, or leave it out")
    return list(PARTS)[int(number) - 1]


def _codes_in(arguments: Mapping[str, Any]) -> list[str]:
    """Parse the codes as models write them: a list of strings or numbers, or a single string."""
    given = arguments.get("codes")
    if given is None or isinstance(given, bool):
        raise InvalidRequest(f"{REPORT_TOOL} needs codes", remedy="give a list of them, an empty one if you see none")
    several = given if is_list(given) else [given]
    text = " ".join(str(each) for each in several if isinstance(each, str | int))[:_LONGEST_REPORT]
    return list(dict.fromkeys(_CODE.findall(text)))


def _phase(host: _Host) -> str:
    """The session's phase, except that it is `saving`, not `over`, until the profile has been written."""
    if host.finished is not None:
        return "over"
    return "saving" if host.session.phase == "over" else host.session.phase


def _progress_of(host: _Host) -> dict[str, Any]:
    session, finished = host.session, host.finished or Finished()
    return {
        "name": plain(host.client_name, 100) or None,
        "version": plain(host.client_version or "", 100) or None,
        "model": session.model,
        "phase": _phase(host),
        "reported": len(PARTS) - len(session.left),
        "parts": len(PARTS),
        "profile": finished.profile,
        "place": finished.place,
        "used": finished.used,
        "extends": finished.extends,
        "learned": list(finished.learned),
        "read": session.sight.read if finished.profile else {},
        "problem": finished.problem,
    }
