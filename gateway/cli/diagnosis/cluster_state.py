"""Check what replicas share: whether Redis answers, and whether each can open what another one keeps."""

from collections.abc import Iterator

from anyio import to_thread

from gateway.cli.diagnosis.authorization_state import redis_info
from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult
from gateway.config.schema import Settings
from gateway.errors import ConfigError

ABOUT = "cluster"
_OLDEST_REDIS = (6, 2)


async def check_cluster(context: CheckContext) -> list[CheckResult]:
    """Examine the Redis of `cluster.url`, and the settings that replicas need."""
    settings = context.settings
    if settings.cluster.url is None:
        return []
    try:
        found = await to_thread.run_sync(lambda url: list(_redis(url)), settings.cluster.url)
    except ConfigError as error:
        return [CheckResult(ABOUT, "problem", error.message, error.remedy)]
    return [*found, *_settings(settings)]


def _redis(url: str) -> Iterator[CheckResult]:
    from gateway.serving.cluster.keys import TAG
    from gateway.serving.databases.redis_connection import RedisConnection

    RedisConnection(url, TAG, "cluster.url")  # says what is wrong with the URL, or not installed
    from redis.exceptions import RedisClusterException, RedisError

    try:
        info = redis_info(url, TAG)
    except (RedisError, RedisClusterException, OSError) as error:
        words = " ".join(str(error).split())
        remedy = "see cluster.url: its host, port, user and password, and whether it runs"
        yield CheckResult(ABOUT, "problem", f"its Redis cannot be reached: {words}", remedy)
        return
    version = str(info.get("redis_version"))
    yield CheckResult(ABOUT, "ok", f"replicas share Redis {version}")
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_REDIS:
        oldest = ".".join(map(str, _OLDEST_REDIS))
        yield CheckResult(ABOUT, "problem", f"Redis {version} is too old", f"use Redis {oldest} or newer")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        text = f"Redis removes keys when its memory is full (maxmemory-policy {policy}): sessions are lost"
        yield CheckResult(ABOUT, "warning", text, "CONFIG SET maxmemory-policy noeviction, also in redis.conf")


def _settings(settings: Settings) -> Iterator[CheckResult]:
    if settings.store.url.startswith("memory:"):
        text = "content is kept by each replica alone, so others cannot open its handles and links"
        yield CheckResult(ABOUT, "warning", text, "give [store] a url and a key that all replicas have")
    elif settings.store.key is None:
        text = "handles of content differ from replica to replica"
        yield CheckResult(ABOUT, "warning", text, "give [store] a key that all replicas have")
