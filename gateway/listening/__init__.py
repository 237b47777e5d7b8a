"""A port of our own: who may call, and how it is served and ended. The same for hosts and for the model proxy."""

from gateway.listening.allowed import LOOPBACK, Allowed, is_loopback
from gateway.listening.serving import Listening, serve

__all__ = ["LOOPBACK", "Allowed", "Listening", "is_loopback", "serve"]
