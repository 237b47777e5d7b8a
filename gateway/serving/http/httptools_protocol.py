"""uvicorn's protocol on httptools with a limit on headers and trailers, which it does not have itself.

This is a separate module because httptools does not exist for every Python.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.serving.http.protocols import MOST_HEADER_BYTES


class BoundedHttpToolsProtocol(HttpToolsProtocol):
    """Closes a connection that sends more than `MOST_HEADER_BYTES` outside of bodies."""

    _beside_body = 0

    def data_received(self, data: bytes) -> None:
        """Count incoming bytes until they turn out to be a body or complete the headers."""
        self._beside_body += len(data)
        super().data_received(data)
        if self._beside_body > MOST_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")

    def on_headers_complete(self) -> None:
        """The headers are complete."""
        self._beside_body = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Receive a piece of the body, or of one of its chunks."""
        self._beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body and the trailers are complete."""
        self._beside_body = 0
        super().on_message_complete()
