"""Connections to an upstream: opening, supervising, counting, and their sessions."""
