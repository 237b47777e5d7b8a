"""Serve the model proxy on its port."""

from collections.abc import Callable
from urllib.parse import urlsplit

from gateway.config.model_proxy_settings import ModelProxySettings
from gateway.content.shaping.repair_request import Repairer
from gateway.errors import ConfigError
from gateway.serving.http import Listening, serve
from gateway.serving.model_proxy.app import CheckSize, Explain, proxy_app
from gateway.system.loopback import is_loopback


async def serve_model_proxy(
    settings: ModelProxySettings,
    repairer: Repairer,
    *,
    owner: str = "local",
    explain: Explain | None = None,
    on_bound: Callable[[int], None] | None = None,
    check_size: CheckSize | None = None,
) -> None:
    """Listen and serve until cancelled. `on_bound` is called with the port.

    Raises:
        ConfigError: as for `check_proxy_bind` and `proxy_app`, or the address cannot be bound.
        ProfileError: there is no such model profile.
    """
    check_proxy_bind(settings)
    app = proxy_app(settings, repairer, owner=owner, explain=explain, check_size=check_size)
    listening = Listening(settings.bind, settings.port, "model_proxy.port")
    await serve(app, listening, on_bound=on_bound, dated=False)


def check_proxy_bind(settings: ModelProxySettings) -> None:
    """Raise `ConfigError` if other machines could use the proxy without a token."""
    if not settings.token and not is_loopback(settings.bind):
        raise ConfigError(
            f"{settings.bind} can be reached from other machines, so a token is needed",
            where="model_proxy.bind",
            remedy="set [model_proxy] token, or bind to 127.0.0.1",
        )


def base_urls(settings: ModelProxySettings, port: int) -> dict[str, str]:
    """Return the base URL to configure for each kind of client."""
    host = f"[{settings.bind}]" if ":" in settings.bind else settings.bind
    proxy = f"http://{host}:{port}"
    path = urlsplit(settings.to or "").path.rstrip("/")
    return {
        "OpenAI (Chat Completions, Responses)": f"{proxy}{path or '/v1'}",
        "Anthropic": proxy,
        "Gemini": proxy,
        "Ollama": proxy,
    }
