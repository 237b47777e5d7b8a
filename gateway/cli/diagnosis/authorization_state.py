"""Check the state that gateways share: whether Redis or Postgres answers, and keeps what it is given."""

from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from anyio import to_thread

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult
from gateway.config.authorization_settings import CLUSTER_SCHEMES, POSTGRES_SCHEMES
from gateway.errors import ConfigError
from gateway.system.loopback import is_loopback

ABOUT = "authorization server"
_SECONDS = 3
_OLDEST_REDIS = 6
_OLDEST_POSTGRES = 13
_UNPRIVILEGED = (
    "SELECT to_regnamespace('mcp_gateway_authorization') IS NULL "
    "AND NOT has_database_privilege(current_database(), 'CREATE')"
)


async def check_state(context: CheckContext) -> list[CheckResult]:
    """Examine the Redis or Postgres that `access.authorization_server.state` names."""
    server = context.settings.access.authorization_server
    if server is None or server.state is None:
        return []
    examine = _postgres if server.state.startswith(POSTGRES_SCHEMES) else _redis
    try:
        return await to_thread.run_sync(lambda url: list(examine(url)), server.state)
    except ConfigError as error:
        return [CheckResult(ABOUT, "problem", f"the state {error.message}", error.remedy)]


def _redis(url: str) -> Iterator[CheckResult]:
    from gateway.serving.authorization.redis_records import TAG
    from gateway.serving.authorization.redis_state import RedisState

    RedisState(url)  # says what is wrong with the URL, or not installed
    from redis.exceptions import RedisClusterException, RedisError

    try:
        found = redis_info(url, TAG)
    except (RedisError, RedisClusterException, OSError) as error:
        yield _unreachable("Redis", error)
        return
    version = str(found.get("redis_version"))
    yield CheckResult(ABOUT, "ok", f"its state is kept in Redis {version}")
    if int(version.partition(".")[0]) < _OLDEST_REDIS:
        yield CheckResult(ABOUT, "problem", f"Redis {version} is too old", f"use Redis {_OLDEST_REDIS} or newer")
    policy = str(found.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        text = f"Redis removes keys when its memory is full (maxmemory-policy {policy}): approvals and tokens are lost"
        yield CheckResult(ABOUT, "warning", text, "CONFIG SET maxmemory-policy noeviction, also in redis.conf")
    if not found.get("aof_enabled"):
        text = "Redis loses what is newer than its last snapshot when it restarts: hosts have to be approved again"
        yield CheckResult(ABOUT, "warning", text, "CONFIG SET appendonly yes, also in redis.conf")
    if not url.startswith(("rediss", "unix:")) and not is_loopback(urlsplit(url).hostname or ""):
        yield _unencrypted("rediss:// in place of redis://, and TLS in Redis (tls-port)")


def redis_info(url: str, tag: str) -> Mapping[str, Any]:
    """Return what `INFO` says; in a cluster, that of the node which has the keys with this tag."""
    from redis import Redis, RedisCluster

    limits: dict[str, Any] = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
    if not url.startswith(CLUSTER_SCHEMES):
        with cast("Any", Redis).from_url(url, **limits) as redis:
            return redis.info()
    with cast("Any", RedisCluster).from_url(url.replace("+cluster", "", 1), **limits) as cluster:
        return cluster.info(target_nodes=cluster.get_node_from_key(tag))


def _postgres(url: str) -> Iterator[CheckResult]:
    from gateway.serving.authorization.postgres_database import SCHEMA, PostgresDatabase

    PostgresDatabase(url)  # says what is wrong with the URL, or not installed
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=_SECONDS) as connection:
            connection.execute(f"SET statement_timeout = '{_SECONDS}s'".encode("ascii"))
            version = connection.info.server_version // 10_000
            reads_only, lacks = _row(connection, f"SELECT pg_is_in_recovery(), ({_UNPRIVILEGED})")
            (fsync,) = _row(connection, "SELECT current_setting('fsync')")
            is_local = is_loopback(connection.info.host) or connection.info.host.startswith("/")
            is_encrypted = bool(connection.pgconn.ssl_in_use)
    except (psycopg.Error, OSError) as error:
        yield _unreachable("Postgres", error)
        return
    yield CheckResult(ABOUT, "ok", f"its state is kept in Postgres {version}")
    if version < _OLDEST_POSTGRES:
        yield CheckResult(
            ABOUT, "problem", f"Postgres {version} is too old", f"use Postgres {_OLDEST_POSTGRES} or newer"
        )
    if reads_only:
        yield CheckResult(ABOUT, "problem", "Postgres is a standby, which takes no writes", "name the primary server")
    if lacks:
        text = f"its user may not create the schema {SCHEMA}"
        yield CheckResult(ABOUT, "problem", text, "GRANT CREATE ON DATABASE, or create the schema for that user")
    if fsync == "off":
        text = "Postgres may lose or damage everything when its machine stops (fsync = off)"
        yield CheckResult(ABOUT, "warning", text, "fsync = on in postgresql.conf")
    if not is_local and not is_encrypted:
        yield _unencrypted("add ?sslmode=verify-full to the URL, and TLS to Postgres (ssl = on)")


def _row(connection: Any, query: str) -> Any:
    return connection.execute(query).fetchone()


def _unreachable(name: str, error: Exception) -> CheckResult:
    words = " ".join(str(error).split())
    remedy = "see access.authorization_server.state: its host, port, user and password, and whether it runs"
    return CheckResult(ABOUT, "problem", f"its state cannot be reached in {name}: {words}", remedy)


def _unencrypted(remedy: str) -> CheckResult:
    text = "what is written of approvals, and the password, go over the network without TLS"
    return CheckResult(ABOUT, "warning", text, remedy)
