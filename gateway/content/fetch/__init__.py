"""Fetch URLs that the configuration allows, and no others."""

from gateway.content.fetch.fetch_url import Fetched, Fetcher, fetch
from gateway.content.fetch.file_names import clean_name, name_in_disposition
from gateway.content.fetch.percent_encoding import percent_decoded
from gateway.content.fetch.sniff import peeked, typed

__all__ = ["Fetched", "Fetcher", "clean_name", "fetch", "name_in_disposition", "peeked", "percent_decoded", "typed"]
