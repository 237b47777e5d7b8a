"""Asking a server for embeddings: vectors that are near one another when texts mean nearly the same."""
