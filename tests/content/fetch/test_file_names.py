"""Names of files as others give them."""

import pytest

from gateway.content.fetch import clean_name, name_in_disposition
from gateway.content.fetch.file_names import name_in_url


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("a.png", "a.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\b.pdf", "b.pdf"),
        (" a\tb\r\nc\x1b[31m.txt ", "a b c [31m.txt"),
        ("..", None),
        (".", None),
        (".bashrc", "bashrc"),
        ("", None),
        (None, None),
        ("a/", None),
        ('q"<>|?*.png', "q______.png"),
        ("\u202egnp.exe", "gnp.exe"),
        ("größe 大.png", "größe 大.png"),
        ("n" * 300 + ".jpeg", "n" * 145 + ".jpeg"),
        ("n" * 300, "n" * 150),
    ],
)
def test_a_name_is_its_last_part_without_what_could_do_harm(given, clean):
    assert clean_name(given) == clean


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("attachment; filename=a.png", "a.png"),
        ('inline; filename="a \\"b\\".png"', "a _b_.png"),
        ("attachment; filename=\"x.txt\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt", "größe.txt"),
        ("attachment; filename*=iso-8859-1'de'gr%F6%DFe.txt", "größe.txt"),
        ("attachment; filename*=nonsense''a%20.txt; filename=b.txt", "b.txt"),
        ("attachment; filename*=UTF-8''..%2F..%2Fa.txt", "a.txt"),
        ('form-data; name="file"; filename="/etc/passwd"', "passwd"),
        ("attachment", None),
        ("", None),
        (None, None),
    ],
)
def test_the_name_in_a_content_disposition_is_read(header, name):
    assert name_in_disposition(header) == name


def test_the_name_in_a_url_is_its_last_part():
    assert name_in_url("https://a.example/x/y%20z.png?name=w.png#v") == "y z.png"
    assert name_in_url("https://a.example/x/..%2F..%2Fpasswd") == "passwd"
    assert name_in_url("https://a.example/") is None
