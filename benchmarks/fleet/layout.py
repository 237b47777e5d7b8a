"""What the programs of the fleet are told: the gateway's configuration file, and nginx's."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

BUCKET: Final = "fleet"
HOST_NAME: Final = "fleet-host"
PRINCIPALS: Final = ("ada", "ben", "cleo", "dan", "eva", "fay", "gil", "hana")
REDIS_PASSWORD: Final = "a-password-of-redis"  # noqa: S105 - of a Redis on loopback, for a run

CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "fleet", "AWS_SECRET_ACCESS_KEY": "of-a-bucket-on-loopback"}


def token_of(principal: str) -> str:
    """Return the bearer token of a principal."""
    return f"token-of-{principal}-0123456789"


def gateway_toml(*, redis: int, store: int, upstream: int, lost_after: float, grace: float) -> str:
    """Return the one file that all replicas have; the numbers are ports on loopback, and seconds."""
    tokens = "".join(f'[access.tokens.{one}]\ntoken = "{token_of(one)}"\n' for one in PRINCIPALS)
    endpoint = f"endpoint=http://127.0.0.1:{store}&region=us-east-1"
    return f"""[cluster]
url = "redis://:{REDIS_PASSWORD}@127.0.0.1:{redis}/0"
lost_after = {lost_after}
[store]
url = {json.dumps(f"s3://{BUCKET}/gateway?{endpoint}")}
key = "a-key-that-all-replicas-have"
timeout = 5
[http]
drain_grace = {grace}
max_connections = 4000
trusted_proxies = ["127.0.0.1"]
[profiles.fleet]
extends = "text-only"
match = [{{ client_name = "{HOST_NAME}*" }}]
sets = {{ "wait.call" = 3, "wait.progress_resets" = false }}
[upstreams.own]
url = "http://127.0.0.1:{upstream}/mcp"
max_sessions = 1000
[upstreams.asks]
url = "http://127.0.0.1:{upstream}/mcp"
max_sessions = 1000
[upstreams.all]
url = "http://127.0.0.1:{upstream}/mcp"
session = "shared"
[upstreams.slow]
url = "http://127.0.0.1:{upstream}/mcp"
session = "shared"
{tokens}"""


def nginx_conf(folder: Path, port: int, replicas: Iterable[int]) -> str:
    """Return a plain proxy: each request to the next replica, whichever host it comes from."""
    servers = "\n".join(f"        server 127.0.0.1:{each};" for each in replicas)
    gone = (
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the replica of the gateway that had this request '
        'is gone, and nobody knows whether it was carried out (repeat it if that does no harm)"}}'
    )
    return f"""pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log warn;
daemon off;
worker_processes 1;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    client_max_body_size 0;
    upstream gateways {{
{servers}
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://gateways;
            proxy_http_version 1.1;
            proxy_set_header Host $host:$server_port;
            proxy_set_header Connection "";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_buffering off;
            proxy_read_timeout 1h;
            error_page 502 504 @gone;
        }}
        location @gone {{
            default_type application/json;
            return 502 '{gone}';
        }}
    }}
}}
"""
