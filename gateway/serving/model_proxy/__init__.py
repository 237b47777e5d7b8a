"""HTTP proxy for a model API: repairs tool results, and passes everything else on unchanged."""

from gateway.serving.model_proxy.app import proxy_app
from gateway.serving.model_proxy.proxy_server import base_urls, check_proxy_bind, serve_model_proxy

__all__ = ["base_urls", "check_proxy_bind", "proxy_app", "serve_model_proxy"]
