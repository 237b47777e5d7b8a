"""uvicorn's protocol on httptools, which itself takes headers and trailers without end.

A module of its own, because httptools need not be installed (the extra `fast`).
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.serving.http.protocols import MOST_HEADER_BYTES


class BoundedHttpToolsProtocol(HttpToolsProtocol):
    """Closes a connection on which more than `MOST_HEADER_BYTES` came that are not of a body."""

    _beside_body = 0

    def data_received(self, data: bytes) -> None:
        """Count what comes, until it proves to be a body, or headers that are whole."""
        self._beside_body += len(data)
        super().data_received(data)
        if self._beside_body > MOST_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")

    def on_headers_complete(self) -> None:
        """The headers are whole."""
        self._beside_body = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body, or of one of its chunks."""
        self._beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Body and trailers are whole."""
        self._beside_body = 0
        super().on_message_complete()
