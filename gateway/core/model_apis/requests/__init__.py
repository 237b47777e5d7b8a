"""Requests of model APIs: finding the tool results in them, and replacing these by lowered ones."""
