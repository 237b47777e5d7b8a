"""Requests of model APIs: the tool results in them are found, and what they are lowered to is put in their place."""
