"""Signed links to stored content."""
