"""What a gateway serves over HTTP only by `[experimental]`: newer revisions, files beside the protocol, its card."""

from typing import TYPE_CHECKING

from gateway._version import __version__
from gateway.config.schema import Settings
from gateway.runtime import Gateway

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from gateway.serving.mcp.handshake import Identity
    from gateway.serving.mcp.server_card import Discovery


def identity_over_http(gateway: Gateway) -> "Identity":
    """Return what the gateway is for hosts over HTTP."""
    from gateway.serving.mcp.handshake import Identity

    own, methods = (
        gateway.settings.gateway,
        frozenset[str]() if gateway.transfers is None else gateway.transfers.methods,
    )
    others, newer = gateway.router.introductions, gateway.settings.experimental.newer_revisions
    return Identity(own.name, __version__, None, own.instructions, others, newer, methods)


def file_routes(gateway: Gateway) -> "list[BaseRoute]":
    """Return the routes of files that hosts send, if they may."""
    if gateway.transfers is None:
        return []
    from gateway.serving.content.file_upload import file_routes

    return file_routes(gateway.store, gateway.transfers)


def discovery_of(settings: Settings) -> "Discovery | None":
    """Return the documents that say what this server is, if they are served."""
    if settings.experimental.server_card is None:
        return None
    from gateway.core.model.revisions import REVISIONS
    from gateway.serving.mcp.server_card import Discovery

    return Discovery(
        settings.experimental.server_card, __version__, (*REVISIONS, *settings.experimental.newer_revisions)
    )
