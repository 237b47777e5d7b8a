"""TLS for a port, with a certificate in files that may be replaced while the gateway runs."""

import logging
import ssl
from pathlib import Path

from gateway.errors import ConfigError

logger = logging.getLogger(__name__)


class TlsFiles:
    """A certificate and its key, in files. `where` is the configuration key of the certificate, for errors."""

    def __init__(self, certificate: Path, key: Path, where: str) -> None:
        """Raises ConfigError if they cannot be used."""
        self._files = (certificate, key)
        self._where = where
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """For connections; those that are open keep the certificate that they began with."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._seen = self._version()
        self._load()

    def refresh(self) -> None:
        """Read the files again if they have changed. If they do not fit together, the certificate before them stays."""
        version = self._version()
        if version == self._seen:
            return
        self._seen = version
        try:
            self._load()
        except ConfigError as error:
            logger.warning("the changed certificate is not used, and the one before stays: %s", error)
        else:
            logger.info("the certificate %s was read again", self._files[0])

    def _load(self) -> None:
        certificate, key = self._files
        try:
            # Tried apart first: a failure would leave half of it in the context of open connections.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                context.load_cert_chain(certificate, key, password=_no_passphrase)
        except (OSError, ValueError) as error:
            words = error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
            raise ConfigError(
                f"{certificate} and {key} cannot be used for TLS: {words or error}",
                where=self._where,
                remedy="they must be a certificate and its key, both PEM, the key without a passphrase",
            ) from None

    def _version(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(_stamp(file) for file in self._files)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase")  # in place of a question on the terminal
