"""The catalogue of one upstream, saved for the next run of the gateway and loaded from the last one."""

from collections.abc import Callable
from typing import get_args

import anyio
import anyio.to_thread

from gateway.core.model.revisions import Era
from gateway.upstream.catalogues import Catalogues, RememberedLists
from gateway.upstream.connection.negotiate_era import Opening
from gateway.upstream.connection.sessions import Eras
from gateway.upstream.connection.supervised_connection import SupervisedConnection

Owner = tuple[str, str]
"""The principal whose lists they are, and the upstream's name: others may have the same settings, too."""


class KeptCatalogue:
    """The lists and the description of an upstream's default connection, in a file of `catalogues`, if any."""

    def __init__(self, catalogues: Catalogues | None, default: SupervisedConnection, eras: Eras) -> None:
        self._catalogues = catalogues
        self._default = default
        self._eras = eras
        self._kept: RememberedLists | None = None
        self._changed = anyio.Event()

    def recall(self, owner: Owner | None) -> bool:
        """Load what the last run of the gateway saved, and return whether it is one principal's: that of `owner`."""
        known = self._catalogues.recall(self._default.settings) if self._catalogues is not None else None
        if known is None or (known.is_personal and (owner is None or known.of != owner)):
            return False
        self._kept = known
        self._default.lists.take(known)
        self._eras.spoken.update(era for era in get_args(Era) if era in known.eras)
        self._eras.silent.update(era for era in get_args(Era) if era in known.silent)
        era: Era = "modern" if known.era == "modern" else "handshake"
        self._default.opening = Opening(
            era, known.revision or "", known.server_info, known.capabilities, known.instructions
        )
        return known.is_personal

    def describes(self, opening: Opening) -> bool:
        """Whether it is of the same version of the server, or there is none yet."""
        return self._kept is None or self._kept.server_info == opening.server_info

    def changed(self) -> None:
        """Let it be saved soon."""
        self._changed.set()

    async def keep(self, owner: Callable[[], Owner | None]) -> None:
        """Run forever, and save it whenever it has changed. `owner` returns whose it is, if it is one principal's."""
        if self._catalogues is None:
            return
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            now = self._now(owner())
            with anyio.CancelScope(shield=True):  # a short command ends as soon as it has its response
                await anyio.to_thread.run_sync(self._catalogues.keep, self._default.settings, now, now == self._kept)
            self._kept = now

    def _now(self, owner: Owner | None) -> RememberedLists:
        opening = self._default.opening or Opening("handshake", "")
        return RememberedLists(
            **self._default.lists.known(),
            era=opening.era,
            revision=opening.revision,
            server_info=opening.server_info,
            capabilities=opening.capabilities,
            instructions=opening.instructions,
            eras=tuple(sorted(self._eras.spoken)),
            silent=tuple(sorted(self._eras.silent)),
            is_personal=owner is not None,
            of=owner,
        )
