"""Differences between operating systems: processes, TLS, folders, memory."""
