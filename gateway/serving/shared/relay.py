"""The process that a host starts with `serve --shared`: it passes messages on to the shared gateway, and back.

Standard library only, so that each host costs little memory and gets its first answer at once (`EarlyStdio`). It knows
enough of MCP to survive its gateway. If that ends, requests that only read are sent again, every other one gets an
error that says what happened, and the next gateway is told what this host has set up: `initialize`, the log level and
the subscriptions.
"""

import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gateway._version import __version__
from gateway.config.early_config import read_greeting, toolsets_of_host
from gateway.config.find_config import find_file
from gateway.config.fingerprint import Usability, usability
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import INTERNAL_ERROR, text_result
from gateway.errors import GatewayError
from gateway.serving.control.protocol import parse_line
from gateway.serving.mcp.await_configuration import await_configuration
from gateway.serving.mcp.handshake import Identity, Refusal
from gateway.serving.shared.attach import GOODBYE
from gateway.serving.shared.attachment import Attachment, GivenUp, Lost, about, attach, head_of, line_of
from gateway.serving.shared.host_setup import HostSetup, is_own_request
from gateway.serving.shared.relay_options import RelayOptions
from gateway.serving.shared.start_gateway import CannotStart, SharedGateway
from gateway.system.gateway_chain import check_chain

if TYPE_CHECKING:
    from gateway.serving.mcp.early_stdio import Arrival, EarlyStdio

DELAYS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each attempt to attach again. After the last one, the host's next request is the next attempt."""
STEADY_SECONDS = 30.0
"""A gateway that has lived for so long is not one that ends as soon as it is started."""

LEAVE_SECONDS = 5.0
"""Time for open requests to be answered after the host has closed its end; the gateway itself waits less."""

_UNUSABLE = 2
"""The exit code of a gateway whose configuration cannot be used."""
_LAST_WORDS_SECONDS = 1.0
_INTRODUCTION_SECONDS = 0.05
_ACKNOWLEDGED = b"subscriptions/acknowledged"
_BEGINNING = 200
"""Bytes of a notification that have its method."""
_LOOK_SECONDS = 0.1

_READS_ONLY = frozenset(
    {
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    }
)
"""Requests that may be sent twice."""

_LISTS = ("tools", "resources", "prompts")


def relay(opening: "EarlyStdio", options: RelayOptions) -> int | None:
    """Relay between the host, whose connection has been opened, and the shared gateway, until the host leaves.

    Return the exit code; None, with the host's messages untouched, if there is nothing to share: no configuration, or
    no private folder for the gateway's socket.
    """
    config = find_file(options.config, environ=os.environ)
    if config is None:
        return None
    try:
        shared = SharedGateway.of(config, os.environ)
    except OSError as error:
        _say(f"warning: hosts cannot share a gateway: {error}; this one gets a gateway of its own")
        return None
    try:
        check_chain(config, os.environ)
        toolsets = toolsets_of_host(config, os.environ, options.toolset)
        opening.toolsets = toolsets
        return _Relay(opening, options, toolsets, shared).run()
    except CannotStart as error:
        _say_error(str(error))
        return error.code
    except (GatewayError, OSError) as error:
        _say_error(str(error))
        return _UNUSABLE if isinstance(error, GatewayError) else 1


class _Relay:
    """One host, and the gateways that it is attached to, one after another. `run` is the main thread's."""

    def __init__(
        self, opening: "EarlyStdio", options: RelayOptions, toolsets: tuple[str, ...], shared: SharedGateway
    ) -> None:
        self._opening = opening
        self._options = options
        self._toolsets = toolsets
        self._shared = shared
        self._woken = threading.Event()
        self._attachment: Attachment | None = None
        self._attempts = 0
        self._state = threading.Lock()
        """For what both threads change: the three below."""
        self._in_flight: dict[str | int, dict[str, Any]] = {}
        """The host's requests that are not answered yet."""
        self._asked: set[str | int] = set()
        """The gateway's requests that the host has not answered yet."""
        self._last_id = 0
        """The highest id of a request of a gateway."""
        self._resent: set[str | int] = set()
        self._setup = HostSetup(opening, options, toolsets)
        self._left: float | None = None
        """When the host has closed its end."""

    def run(self) -> int:
        """Relay until the host leaves.

        Raises:
            CannotStart, GatewayError, OSError: there is no gateway to attach to at the beginning.
        """
        self._opening.listen(self._wake)
        seen = usability(self._shared.config)
        try:
            if not self._attach_first():
                return 0
        except CannotStart as error:
            if error.code != _UNUSABLE:
                raise
            if not self._await_configuration(seen, str(error)):
                return _UNUSABLE
        while True:
            self._woken.wait()
            self._woken.clear()
            if self._attachment is not None and self._attachment.over.is_set():
                self._recover()
            while (taken := self._opening.take()) is not None:
                self._forward(*taken)
            if self._opening.ended and not self._opening.waiting:
                return self._leave()

    def _wake(self) -> None:
        self._woken.set()
        if self._opening.ended and self._left is None:
            self._left = time.monotonic()
            threading.Thread(target=self._end_writing, name="leaving", daemon=True).start()

    def _end_writing(self) -> None:
        """Close the connection to a gateway that reads nothing, once the host has left: writing to it would not end."""
        while True:
            if (attachment := self._attachment) is not None:
                if attachment.sending.acquire(timeout=LEAVE_SECONDS):
                    attachment.sending.release()
                else:
                    attachment.close()
            time.sleep(_LOOK_SECONDS)

    def _leave(self) -> int:
        """Let the gateway finish the open requests, for a limited time; without any, leave at once."""
        if (attachment := self._attachment) is not None:
            attachment.end()
            with self._state:
                is_waited_for = bool(self._in_flight)
            attachment.over.wait(LEAVE_SECONDS if is_waited_for else _LAST_WORDS_SECONDS)
            attachment.close()
        return 0

    def _has_left_for_good(self) -> bool:
        """Whether the host has left, and what it has asked before would not be answered in time."""
        left = self._left
        return self._has_left() or (left is not None and time.monotonic() - left > LEAVE_SECONDS)

    # Messages of the host

    def _forward(self, message: dict[str, Any], arrival: "Arrival") -> None:
        if self._attachment is not None and self._attachment.over.is_set():
            self._recover()
        if "method" not in message:
            self._answer(message)
        elif "id" in message:
            self._ask(message, arrival)
        else:
            self._notify(message)

    def _answer(self, message: Mapping[str, Any]) -> None:
        """Pass on an answer, unless its request was that of a gateway which has ended."""
        with self._state:
            known = message["id"] in self._asked
            self._asked.discard(message["id"])
        if self._attachment is not None and known:
            self._attachment.send(message)

    def _notify(self, message: Mapping[str, Any]) -> None:
        if self._attachment is not None:
            self._setup.introduce(self._attachment)
            self._attachment.send(message)
        self._remember(message)

    def _ask(self, message: dict[str, Any], arrival: "Arrival") -> None:
        problem = None if self._attachment is not None else self._attach_again()
        if (attachment := self._attachment) is None:
            self._fail(message, problem or "the shared gateway cannot be reached")
            return
        self._setup.introduce(attachment)
        self._remember(message)
        with self._state:
            self._in_flight[message["id"]] = message
        if told := about(arrival, self._opening.lists, attachment.record):
            attachment.send({"relay": told})
        attachment.send(message)

    def _remember(self, message: Mapping[str, Any]) -> None:
        """Note what a host sets up, so that the next gateway can be told, and what it no longer waits for."""
        self._setup.note(message)
        if message["method"] == "notifications/cancelled":
            cancelled = as_object(message.get("params")).get("requestId")
            if isinstance(cancelled, (str, int)):
                with self._state:
                    self._in_flight.pop(cancelled, None)

    # Messages of the gateway, in a thread for each attachment

    def _read(self, attachment: Attachment) -> None:
        with suppress(OSError):
            for line in attachment.lines():
                self._pass_on(attachment, line)
        attachment.over.set()
        self._woken.set()

    def _pass_on(self, attachment: Attachment, line: bytes) -> None:
        if line == GOODBYE:
            attachment.said_goodbye = True
            return
        head = head_of(line)
        if head.kind == "notification" and _ACKNOWLEDGED in line[:_BEGINNING] and self._is_said(line):
            return
        with self._state:
            if head.kind == "answer" and head.id is not None:
                if is_own_request(head.id) and head.id not in self._in_flight:
                    return
                self._in_flight.pop(head.id, None)
                self._resent.discard(head.id)
                if self._opening.is_own(head.id):
                    return
            elif head.kind == "request" and head.id is not None:
                self._asked.add(head.id)
                if isinstance(head.id, int):
                    self._last_id = max(self._last_id, head.id)
        self._opening.write(line)

    def _is_said(self, line: bytes) -> bool:
        message = as_object(parse_line(line))
        return self._opening.is_said(str(message.get("method")), as_object(message.get("params")))

    # Attaching

    def _attach_first(self) -> bool:
        """Attach for the first time. Return False if the host has left before that."""
        until = time.monotonic() + _INTRODUCTION_SECONDS
        while self._setup.description() is None and time.monotonic() < until and not self._opening.ended:
            time.sleep(0.005)
        for delay in DELAYS:
            if self._pause(delay):
                return False
            try:
                return self._attach()
            except GivenUp:
                return False
            except Lost:
                continue
        raise GatewayError("the shared gateway ends as soon as it is started", remedy="see `mcp-gateway logs`")

    def _await_configuration(self, seen: Usability, problem: str) -> bool:
        """Tell the host why there is no gateway, and attach once that is corrected. Return False if the host leaves."""
        _say_error(problem)

        def again() -> bool | str:
            try:
                return self._attach_first()
            except CannotStart as error:
                _say_error(str(error))
                return str(error)

        attached = await_configuration(self._opening, self._shared.config, seen, problem, again)
        self._opening.listen(self._wake)
        return bool(attached)

    def _attach_again(self) -> str | None:
        """Attach after the gateway has ended. Return why that is not possible, with no attachment then."""
        problem: str | None = None
        for delay in DELAYS[self._attempts :] or (0.0,):
            self._attempts += 1
            if self._pause(delay):
                return "the host has left"
            try:
                if not self._attach():
                    return "the host has left"
                self._tell_of_lists()
                return None
            except GivenUp:
                return "the host has left"
            except Lost:
                problem = "the shared gateway ends as soon as it is started; `mcp-gateway logs` shows why"
            except (GatewayError, OSError) as error:
                # It will say the same again, until somebody has mended it.
                problem = f"the shared gateway cannot be started: {error}"
                break
        if problem is not None:
            _say_error(problem)
        return problem

    def _pause(self, seconds: float) -> bool:
        """Wait, and return whether the host has left meanwhile."""
        until = time.monotonic() + seconds
        while not self._opening.ended and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
        return self._has_left()

    def _attach(self) -> bool:
        """Attach to the running gateway, started if necessary. Return False if the host leaves meanwhile.

        Raises:
            GivenUp: the host leaves while the gateway does not answer.
            Lost: the gateway is ending.
            CannotStart, GatewayError, OSError: it cannot be started, or does not let this host attach.
        """
        record = self._shared.find_or_start(self._setup.description() or {}, self._has_left)
        if record is None:
            return False
        self._attachment = attachment = attach(
            record, self._shared.config, self._options, self._toolsets, self._last_id, self._has_left_for_good
        )
        _say(f"attached to the gateway of process {record.pid}, whose log is {record.log}")
        greeting = read_greeting(self._shared.config, os.environ, self._toolsets)
        self._opening.introduce(Identity(greeting.name, __version__, None, greeting.instructions, greeting.others))
        threading.Thread(target=self._read, args=(attachment,), name="gateway", daemon=True).start()
        self._setup.repeat(attachment)
        return True

    def _has_left(self) -> bool:
        return self._opening.ended and not self._opening.waiting

    # The end of a gateway

    def _recover(self) -> None:
        """Answer what its end has cut off, and attach to the next gateway, unless nothing needs it for now."""
        attachment, self._attachment = self._attachment, None
        if attachment is None:
            return
        attachment.close()
        if time.monotonic() - attachment.since > STEADY_SECONDS or attachment.said_goodbye:
            self._attempts = 0
        with self._state:
            cut_off, self._in_flight = self._in_flight, {}
            unanswered, self._asked = self._asked, set()
        again = [one for key, one in cut_off.items() if one["method"] in _READS_ONLY and key not in self._resent]
        for key, message in cut_off.items():
            if message["method"] not in _READS_ONLY or key in self._resent:
                self._fail(message, f"{_how(attachment)}: whether this had an effect is not known")
        self._resent = {one["id"] for one in again}
        for key in unanswered:
            params = {"requestId": key, "reason": "the gateway has ended"}
            self._tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        _say(f"{_how(attachment)} (process {attachment.record.pid})")
        if attachment.said_goodbye and not again:
            return  # somebody stopped it: it is started again when this host needs it
        problem = self._attach_again()
        if (following := self._attachment) is None:
            for message in again:
                self._fail(message, problem or "the shared gateway has ended")
            return
        with self._state:
            self._in_flight |= {one["id"]: one for one in again}
        for message in again:
            following.send(message)

    def _tell_of_lists(self) -> None:
        """Have a host of the handshake era read the lists again: the next gateway may have others."""
        if self._setup.was_initialized and self._opening.handshake.era == "handshake":
            for kind in _LISTS:
                self._tell({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})

    def _tell(self, message: Mapping[str, Any]) -> None:
        self._opening.write(line_of(message))

    def _fail(self, message: Mapping[str, Any], reason: str) -> None:
        """Answer a request with an error. A model reads the one of a call, as other failures of calls."""
        if self._opening.is_own(message["id"]):
            return None
        if message.get("method") != "tools/call":
            return self._opening.refuse(message["id"], Refusal(INTERNAL_ERROR, reason))
        result = text_result(reason, is_error=True)
        if self._opening.handshake.era == "modern":
            result["resultType"] = "complete"
        return self._tell({"jsonrpc": "2.0", "id": message["id"], "result": result})


def _how(attachment: Attachment) -> str:
    return f"the shared gateway {'was stopped' if attachment.said_goodbye else 'has ended unexpectedly'}"


def _say(text: str) -> None:
    """Write a line for people to stderr, which hosts keep as the log of a server."""
    _write(f"mcp-gateway: {text}")


def _say_error(text: str) -> None:
    for line in text.splitlines():
        _write(f"error: {line}")


def _write(line: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write("".join(char if char.isprintable() else "?" for char in line) + "\n")
        sys.stderr.flush()
