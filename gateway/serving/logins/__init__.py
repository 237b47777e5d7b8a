"""The pages of logins to upstreams: where a login begins, and where the browser comes back to."""
