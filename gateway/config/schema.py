"""The schema of mcp-gateway.toml: the tables and keys, with their defaults.

Reading files and the environment is `gateway.config.load_settings`; nothing here touches either.
"""

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from gateway.config.access_settings import AccessSettings
from gateway.config.audit_settings import AuditSettings
from gateway.config.claim_header_settings import COMPANY, source_problem
from gateway.config.cluster_settings import ClusterSettings
from gateway.config.code_mode_settings import CodeModeSettings
from gateway.config.console_settings import ConsoleSettings
from gateway.config.content_settings import ContentSettings, FetchSettings, FilesSettings, LimitSettings, MediaSettings
from gateway.config.describe_settings import DescribeSettings
from gateway.config.experimental_settings import ExperimentalSettings
from gateway.config.gateway_settings import GatewaySettings, LoggingSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.login_settings import LoginSettings
from gateway.config.long_call_settings import LongCallSettings
from gateway.config.model_proxy_settings import ModelProxySettings
from gateway.config.overload_settings import OverloadSettings
from gateway.config.policy_settings import PinSettings, PolicySettings
from gateway.config.registry_settings import RegistrySettings
from gateway.config.result_cache_settings import ResultCacheSettings
from gateway.config.section import SecretSection
from gateway.config.setting_types import OWN_NAME
from gateway.config.shared_settings import SharedSettings
from gateway.config.store_settings import StoreSettings
from gateway.config.token_count_settings import TokenCountSettings
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.config.toolset_settings import ToolsetSettings, toolset_problem, which_toolset
from gateway.config.upstream_settings import UPSTREAM_NAME, UPSTREAM_NAME_LENGTH, UpstreamSettings
from gateway.core.profiles.profile import ProfileSource

FILE_VERSION = 1
"""The version of the format of mcp-gateway.toml. It grows when a gateway that does not know it cannot read a file."""


class Settings(SecretSection):
    """The whole file."""

    version: Annotated[int, Field(ge=1, le=FILE_VERSION)] = FILE_VERSION
    """The version of the file's format, so that a gateway too old for it says so."""
    gateway: GatewaySettings = GatewaySettings()
    http: HttpSettings = HttpSettings()
    access: AccessSettings = AccessSettings()
    policy: PolicySettings = PolicySettings()
    pins: PinSettings = PinSettings()
    logins: LoginSettings = LoginSettings()
    model_proxy: ModelProxySettings = ModelProxySettings()
    store: StoreSettings = StoreSettings()
    content: ContentSettings = ContentSettings()
    fetch: FetchSettings = FetchSettings()
    media: MediaSettings = MediaSettings()
    describe: DescribeSettings = DescribeSettings()
    files: FilesSettings = FilesSettings()
    limits: LimitSettings = LimitSettings()
    long_calls: LongCallSettings = LongCallSettings()
    overload: OverloadSettings = OverloadSettings()
    result_cache: ResultCacheSettings = ResultCacheSettings()
    logging: LoggingSettings = LoggingSettings()
    audit: AuditSettings = AuditSettings()
    console: ConsoleSettings = ConsoleSettings()
    tokens: TokenCountSettings = TokenCountSettings()
    tool_search: ToolSearchSettings = ToolSearchSettings()
    code_mode: CodeModeSettings = CodeModeSettings()
    shared: SharedSettings = SharedSettings()
    registry: RegistrySettings = RegistrySettings()
    cluster: ClusterSettings = ClusterSettings()
    experimental: ExperimentalSettings = ExperimentalSettings()
    upstreams: dict[Annotated[str, Field(pattern=UPSTREAM_NAME, max_length=UPSTREAM_NAME_LENGTH)], UpstreamSettings] = (
        Field(default_factory=dict[str, UpstreamSettings])
    )
    toolsets: dict[Annotated[str, Field(pattern=UPSTREAM_NAME, max_length=UPSTREAM_NAME_LENGTH)], ToolsetSettings] = (
        Field(default_factory=dict[str, ToolsetSettings])
    )
    profiles: dict[str, ProfileSource] = Field(default_factory=dict[str, ProfileSource])
    """A user's own host profiles, in the schema of the built-in ones."""

    @field_validator("upstreams")
    @classmethod
    def _own_name_is_free(cls, upstreams: dict[str, UpstreamSettings]) -> dict[str, UpstreamSettings]:
        if OWN_NAME in upstreams:
            raise ValueError(f"the name {OWN_NAME!r} is the gateway's own: give the upstream another")
        return upstreams

    @model_validator(mode="after")
    def _toolsets_exist(self) -> Self:
        if problem := toolset_problem(self.toolsets, self.upstreams):
            raise ValueError(problem)
        for where, name in self.access.toolsets():
            if name not in self.toolsets:
                raise ValueError(f"{where}: there is no toolset {name!r}; {which_toolset(name, self.toolsets)}")
        return self

    @model_validator(mode="after")
    def _public_card_has_an_address(self) -> Self:
        card = self.experimental.server_card
        if card is not None and card.public and self.gateway.public_url is None:
            raise ValueError("experimental.server_card.public needs gateway.public_url: the card says where to connect")
        return self

    @model_validator(mode="after")
    def _claims_have_a_source(self) -> Self:
        server = self.access.authorization_server
        sources = [*self.access.issuers, *([COMPANY] if server is not None and server.oidc is not None else [])]
        if sources.count(COMPANY) > 1:
            raise ValueError(f"access.issuers.{COMPANY} has the name that stands for access.authorization_server.oidc")
        for name, upstream in self.upstreams.items():
            if problem := source_problem(upstream.headers_from_claims, upstream.claims_from, sources):
                raise ValueError(f"upstreams.{name}.{problem}")
        return self
