import pytest

from gateway.upstream.transports.environment import environment, held_back


def test_a_child_gets_what_it_was_given_and_the_few_variables_that_it_needs() -> None:
    inherited = {"PATH": "/bin", "HOME": "/home/x", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "s", "PYTHONPATH": "/y"}
    child = environment({"MINE": "1", "HOME": "/else"}, inherited, platform="linux")
    assert child == {"PATH": "/bin", "HOME": "/else", "LC_ALL": "C", "MINE": "1"}


def test_a_shell_function_is_not_handed_on() -> None:
    assert environment({}, {"TERM": "() { :; }; echo"}, platform="linux") == {}


def test_windows_has_a_table_of_its_own_and_names_in_any_case() -> None:
    inherited = {"Path": r"C:\x", "SystemRoot": r"C:\Windows", "SECRET": "s"}
    assert environment({}, inherited, platform="win32") == {"Path": r"C:\x", "SystemRoot": r"C:\Windows"}


def test_on_windows_a_given_variable_replaces_the_inherited_one_whatever_its_case() -> None:
    inherited = {"PATH": r"C:\x", "PROGRAMFILES(X86)": r"C:\Program Files (x86)"}
    child = environment({"Path": r"D:\mine"}, inherited, platform="win32")
    assert child == {"Path": r"D:\mine", "PROGRAMFILES(X86)": r"C:\Program Files (x86)"}


def test_elsewhere_names_that_differ_in_case_are_different_names() -> None:
    assert environment({"path": "x"}, {"PATH": "/bin", "home": "/h"}, platform="linux") == {"PATH": "/bin", "path": "x"}


NETWORK = {
    "NODE_EXTRA_CA_CERTS": "/etc/company.pem",
    "SSL_CERT_FILE": "/etc/company.pem",
    "SSL_CERT_DIR": "/etc/certificates",
    "REQUESTS_CA_BUNDLE": "/etc/company.pem",
    "PIP_CERT": "/etc/company.pem",
    "UV_SYSTEM_CERTS": "true",
    "npm_config_cafile": "/etc/company.pem",
    "npm_config_cache": "/srv/npm",
    "UV_CACHE_DIR": "/srv/uv",
    "HTTPS_PROXY": "http://proxy.example:3128",
    "https_proxy": "proxy.example:3128",
    "no_proxy": "localhost,.example",
}


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_what_says_how_the_network_is_reached_is_handed_on(platform: str) -> None:
    others = {"UV_INDEX_URL": "https://me:secret@index.example", "NPM_CONFIG_REGISTRY": "x", "NODE_OPTIONS": "-r x"}
    assert environment({}, {**NETWORK, **others}, platform=platform) == NETWORK


@pytest.mark.parametrize(
    "value", ["http://me:secret@proxy:3128", "me:secret@proxy:3128", "http://token@proxy", "http://[me:secret@proxy"]
)
def test_a_proxy_with_a_password_is_not_and_that_is_known(value: str) -> None:
    inherited = {"HTTPS_PROXY": value, "NO_PROXY": "localhost"}
    assert environment({}, inherited, platform="linux") == {"NO_PROXY": "localhost"}
    assert held_back({}, inherited) == ["HTTPS_PROXY"]
    assert environment({"HTTPS_PROXY": value}, inherited, platform="linux")["HTTPS_PROXY"] == value
    assert held_back({"HTTPS_PROXY": value}, inherited) == []


def test_a_proxy_that_is_given_replaces_the_inherited_one_in_any_case() -> None:
    inherited = {"https_proxy": "http://theirs", "HTTPS_PROXY": "http://theirs"}
    assert environment({"HTTPS_PROXY": "http://mine"}, inherited, platform="linux") == {"HTTPS_PROXY": "http://mine"}
