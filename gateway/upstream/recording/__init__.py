"""Recordings of what upstreams answered: written by `serve --record`, answered from by `serve --replay`."""
