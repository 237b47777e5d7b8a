"""A gateway as one of several: opened before it, joined once it runs."""

import os
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from gateway.config.schema import Settings
from gateway.runtime import Gateway
from gateway.serving.control.status_report import Serving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from gateway.serving.cluster.cluster import Cluster
    from gateway.serving.workers.worker import Worker


def opened_cluster(settings: Settings, worker: "Worker | None") -> "AbstractAsyncContextManager[Cluster | None]":
    """Return this gateway as one of several, if it is, to be entered: in a cluster, or as a worker of this machine."""
    if worker is not None:
        from gateway.serving.workers.machine_cluster import open_machine_cluster

        return open_machine_cluster(settings, worker.folder)
    if settings.cluster.url is None:
        return nullcontext()
    from gateway.serving.cluster.cluster import open_cluster

    return open_cluster(settings)


def join(cluster: "Cluster | None", gateway: Gateway, serving: Serving) -> None:
    """Let the gateway be one of several, if it is."""
    if cluster is not None:
        cluster.upstream_of = gateway.router.state_of
        cluster.owners.on_moved = gateway.upstreams.moved
        cluster.observed_by(gateway.router.telemetry.metrics)
        gateway.join(cluster)
        if serving.worker_folder is None:
            serving.replicas = cluster.report


def at_their_replica(routes: "Sequence[BaseRoute]", cluster: "Cluster | None") -> "Sequence[BaseRoute]":
    """Return the routes of logins to upstreams, for browsers that come to another replica than the one that has it."""
    from starlette.routing import Route

    for route in routes:
        if cluster is not None and isinstance(route, Route):
            route.app = _at_its_replica(route.app, cluster)
    return routes


def _at_its_replica(app: "ASGIApp", cluster: "Cluster") -> "ASGIApp":
    from starlette.datastructures import QueryParams

    async def find(scope: "Scope", receive: "Receive", send: "Send") -> None:
        name = scope["path_params"].get("ticket") or QueryParams(scope["query_string"]).get("state", "")
        if not await cluster.passed_on_by_name(name, scope, receive, send):
            await app(scope, receive, send)

    return find


def link_key_of(settings: Settings, cluster: "Cluster | None") -> bytes:
    """Return the key that links are signed with: replicas have one together."""
    from gateway.config.find_config import state_folder
    from gateway.content.links.links import link_key

    if cluster is not None and settings.content.key is None:
        return cluster.secret.key("links")
    return link_key(settings.content.key, state_folder(os.environ))
