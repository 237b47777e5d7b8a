"""Overload: who gets its turn, who is refused, and when memory or the event loop is short."""
