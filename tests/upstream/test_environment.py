from gateway.upstream.environment import environment


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
