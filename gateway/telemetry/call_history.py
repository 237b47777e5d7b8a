"""Past and running tool calls, kept in memory for whoever looks at them: the newest, within bounds."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.model.apps_extension import declares
from gateway.core.model.caller import Caller
from gateway.telemetry.calls import CallRecord

_LISTENERS = 64

Body = tuple[Any, Mapping[str, Any] | None]
"""The arguments of a call, and its result; None for what it had not."""

Listener = Callable[["PastCall"], object]
"""Called with each call that begins or ends. Must not block."""


@dataclass
class PastCall:
    """One call. `number` counts from 1, `began` is in seconds since 1970."""

    number: int
    began: float
    record: CallRecord
    principal: str
    client_version: str | None
    is_running: bool = True
    is_whole: bool = True
    """Whether arguments and result are still kept."""
    read: Callable[[], Body] | None = None
    """Reads both from where they are kept, if not in memory: then they are there, even after a restart."""
    declares_pages: bool | None = None
    """Whether its host declared that it shows pages (MCP Apps); None if that was not noted."""

    @property
    def arguments(self) -> Any:
        """The arguments of the request; None if there were none, or they are no longer kept."""
        return self.record.kept_arguments if self.read is None else self.read()[0]

    @property
    def result(self) -> Mapping[str, Any] | None:
        """The upstream's own result, before it was shaped; None if there was none, or it is no longer kept."""
        return self.record.kept_result if self.read is None else self.read()[1]

    @property
    def has_result(self) -> bool:
        """Whether there is a result that is still kept, which is not read for it."""
        if not self.is_whole:
            return False
        return self.record.kept_result is not None if self.read is None else self.record.bytes_raw > 0

    @property
    def size(self) -> int:
        """The memory of what is kept, in bytes; roughly."""
        return self.record.kept_bytes if self.is_whole else 0


@dataclass
class CallHistory:
    """The newest calls: at most `max_calls`, with arguments and results of at most `max_bytes` together."""

    max_calls: int
    max_bytes: int
    bytes: int = 0
    """The size of all arguments and results that are kept."""
    started: float = field(default_factory=time.time)
    """The time since which calls are recorded, in seconds since 1970; those of earlier runs may be there besides."""
    _calls: OrderedDict[int, PastCall] = field(default_factory=OrderedDict[int, PastCall])
    _whole: OrderedDict[int, PastCall] = field(default_factory=OrderedDict[int, PastCall])
    _listeners: list[Listener] = field(default_factory=list[Listener])
    _last: int = 0

    def begin(self, record: CallRecord, caller: Caller) -> PastCall:
        """Add a call that begins now."""
        record.is_kept = True
        self._last += 1
        call = PastCall(self._last, time.time(), record, caller.principal, caller.client_version)
        call.declares_pages = declares(caller.capabilities)
        self._calls[call.number] = call
        while len(self._calls) > self.max_calls:
            _, oldest = self._calls.popitem(last=False)
            self._release(oldest)
        self._tell(call)
        return call

    def end(self, call: PastCall) -> None:
        """Note that a call has ended, and forget what the oldest ones carry if it is too much."""
        call.is_running = False
        if call.number not in self._calls or call.size > self.max_bytes:
            self._release(call)
        else:
            self._whole[call.number] = call
            self.bytes += call.size
        while self.bytes > self.max_bytes:
            self._release(next(iter(self._whole.values())))
        self._tell(call)

    def restore(self, calls: Iterable[PastCall]) -> None:
        """Add calls of earlier runs, the oldest first, before any of this one."""
        for call in calls:
            self._calls[call.number] = call
            self._last = call.number

    def empty(self, number: int) -> None:
        """Forget the arguments and the result of a call that ended."""
        if (call := self._calls.get(number)) is not None:
            self._release(call)

    def forget(self, number: int) -> None:
        """Forget a call that ended."""
        if (call := self._calls.pop(number, None)) is not None:
            self._release(call)

    def find(self, number: int) -> PastCall | None:
        """Return the call with this number, if it is still kept."""
        return self._calls.get(number)

    def newest_first(self) -> Iterator[PastCall]:
        """Yield all calls that are kept, the newest first."""
        return iter(reversed(self._calls.values()))

    def __len__(self) -> int:
        return len(self._calls)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of each call that begins or ends; the function returned ends this.

        Raises OverflowError if too many listen already.
        """
        if len(self._listeners) >= _LISTENERS:
            raise OverflowError("too many listen to calls already")
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def _release(self, call: PastCall) -> None:
        if self._whole.pop(call.number, None) is not None:
            self.bytes -= call.size
        call.is_whole = call.record.is_kept = False
        call.read = None
        call.record.kept_arguments = call.record.kept_result = None

    def _tell(self, call: PastCall) -> None:
        for listener in tuple(self._listeners):
            listener(call)
