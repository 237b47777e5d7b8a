"""Fetching what the configuration allows, from where it allows it, and from nowhere else."""

from gateway.fetching.data_uris import percent_decoded
from gateway.fetching.fetching import Fetched, Fetcher, fetch
from gateway.fetching.naming import clean_name, name_in_disposition
from gateway.fetching.telling import peeked, typed

__all__ = ["Fetched", "Fetcher", "clean_name", "fetch", "name_in_disposition", "peeked", "percent_decoded", "typed"]
