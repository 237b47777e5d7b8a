"""Databases that several gateways may share: connections, and what is said while one is away."""
