"""Profiles as data: `hosts/*.toml`, one host each, every value with its evidence."""
