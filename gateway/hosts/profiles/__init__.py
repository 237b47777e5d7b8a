"""Profiles of hosts as data: one TOML file for each, every value with its evidence."""
