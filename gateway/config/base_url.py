"""The pattern of addresses that are the base of others."""

BASE_URL = r"^https?://[^\s/?#@]+(?:/[^\s?#]*)?$"
"""An address of no user and no query."""
