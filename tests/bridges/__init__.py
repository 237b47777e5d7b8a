"""Hosts and upstreams of every era and transport, with a gateway between them.

A package for pytest, so that what its tests share ends with the last of them (`scope="package"`).
"""
