"""HTTP APIs as upstreams: the operations of an OpenAPI document as tools of a server within this process."""
