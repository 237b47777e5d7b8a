"""Requests to model APIs: find the tool results in them, and replace them with lowered ones."""
