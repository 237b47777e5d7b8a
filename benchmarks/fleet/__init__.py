"""A fleet: three replicas behind a plain proxy, many hosts, and everything that breaks, one after another."""
