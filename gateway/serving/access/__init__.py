"""Who may use the gateway over HTTP: bearer tokens, each with its principal and what it may reach."""

from gateway.serving.access.identified import Fault, Identified, TokenVerifier
from gateway.serving.access.tokens import Access

__all__ = ["Access", "Fault", "Identified", "TokenVerifier"]
