import base64
from urllib.parse import quote

import pytest

from gateway.content.media.svg import MOST_DEPTH, clean
from gateway.errors import MediaError

LIMIT = 60_000_000
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="40" height="20"'


def cleaned(body: str, attributes: str = "") -> str:
    return clean(f"{HEAD} {attributes}>{body}</svg>".encode(), LIMIT).text


OUTSIDE = [
    "/etc/passwd.png",
    "../secret.png",
    "secret.svg",
    "file:///etc/passwd.png",
    "FILE:/etc/passwd.png",
    "http://127.0.0.1/secret.png",
    "//127.0.0.1/secret.png",
    "\\\\server\\share\\secret.png",
    " /etc/passwd.png",
    "\t/etc/passwd.png",
    "data:image/png",
    "data:text/plain,hello",
    "javascript:secret()",
    "",
]


@pytest.mark.parametrize("reference", OUTSIDE)
@pytest.mark.parametrize("attribute", ["href", "xlink:href", "HREF", "any:href", "src", "xml:base"])
def test_a_reference_to_the_outside_is_left_out(attribute, reference):
    text = cleaned(f'<image {attribute}="{reference}" width="9" height="9"/>', 'xmlns:any="urn:any"')
    assert '<image width="9" height="9"></image>' in text


@pytest.mark.parametrize("element", ["image", "use", "feImage", "linearGradient", "pattern", "textPath", "tref", "a"])
def test_a_fragment_is_kept_on_every_element(element):
    assert '"#one"' in cleaned(f'<{element} href="#one"/>')
    assert "two.svg" not in cleaned(f'<{element} href="two.svg#one"/>')


@pytest.mark.parametrize(
    "css",
    [
        "fill: url(/etc/passwd.svg#a)",
        "fill: url( '/etc/passwd.svg#a' )",
        'fill: url("passwd")',
        "fill: URL(passwd)",
        "fill: u\\72l(passwd)",
        "fill: \\75\\72\\6c (passwd)",
        "fill: url(\\2f etc/passwd)",
        "fill: url(passwd",
        "@import 'passwd'; a {}",
        "@im\\port url(passwd);",
        "@import/* */'passwd'",
        "href: 'passwd'",
        "xlink:hr\\65 f : passwd",
    ],
)
@pytest.mark.parametrize("place", ["style attribute", "style element", "cdata"])
def test_css_refers_to_nothing_outside(css, place):
    escaped = css.replace('"', "&quot;").replace("'", "&apos;")
    body = {
        "style attribute": f'<rect style="{escaped}"/>',
        "style element": f"<style>rect {{ {css} }}</style>",
        "cdata": f"<style><![CDATA[rect {{ {css} }}]]></style>",
    }[place]
    text = cleaned(body).lower()
    assert "url(" not in text.replace("url()", "")
    assert "@import" not in text
    assert "href:" not in text.replace("xmlns:xlink", "").replace("-no-", "")
    assert "href :" not in text


@pytest.mark.parametrize("name", ["fill", "filter", "mask", "clip-path", "marker-start", "cursor"])
def test_a_presentation_attribute_keeps_fragments_and_nothing_else(name):
    assert f'{name}="url(#own)"' in cleaned(f'<rect {name}="url(#own)"/>')
    assert "other" not in cleaned(f'<rect {name}="url(other.svg#own)"/>')


def test_css_that_refers_to_nothing_outside_is_kept_as_it_is():
    css = ".a\\:b { fill: url(#g); /* why */ font: 12px 'Some Font' }"
    assert css in cleaned(f"<style>{css}</style>")


def test_text_and_order_and_own_attributes_are_kept():
    text = cleaned('<g id="a" my:x="1"><text x="1"> a &lt; b &amp; c </text><rect/></g>', 'xmlns:my="urn:my"')
    assert '<g id="a" my:x="1"><text x="1"> a &#60; b &#38; c </text><rect></rect></g></svg>' in text


def test_comments_instructions_and_the_document_type_are_left_out():
    content = f"""<?xml version="1.0"?><?xml-stylesheet href="/etc/passwd.css"?>
        <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
        <!-- passwd -->{HEAD}><!-- passwd --><?php passwd ?></svg>"""
    text = clean(content.encode(), LIMIT).text
    assert text.startswith("<svg ")
    assert "passwd" not in text
    assert "DOCTYPE" not in text


@pytest.mark.parametrize(
    "subset",
    [
        '<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1/evil.dtd"> %a;',
    ],
)
def test_entities_are_refused(subset):
    with pytest.raises(MediaError) as caught:
        clean(f"<!DOCTYPE svg [{subset}]>{HEAD}><text>&a;</text></svg>".encode(), LIMIT)
    assert "entities" in str(caught.value)


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize(
    "uri",
    [
        "data:image/png;base64," + base64.b64encode(PNG).decode(),
        "data:image/jpeg;charset=x;base64," + base64.b64encode(PNG).decode().rstrip("="),
        "DATA:;BASE64,\n " + quote(base64.b64encode(PNG)),
        "data:image/png," + quote(PNG),
    ],
)
def test_an_image_in_a_data_uri_is_kept_and_named_after_what_it_is(uri):
    expected = "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert f'<image href="{expected}"></image>' in cleaned(f'<image href="{uri}"/>')


def test_an_image_in_a_data_uri_is_held_to_the_pixel_limit(bomb):
    assert "data:" not in cleaned(f'<image href="data:image/png;base64,{base64.b64encode(bomb).decode()}"/>')


def nested(body: str) -> str:
    return f'<image href="data:image/svg+xml,{quote(f"{HEAD}>{body}</svg>")}"/>'


def embedded(text: str) -> str:
    prefix = "data:image/svg+xml;base64,"
    at = text.index(prefix) + len(prefix)
    return base64.b64decode(text[at : text.index('"', at)]).decode()


def test_an_svg_in_a_data_uri_is_cleaned_too():
    inner = embedded(cleaned(nested('<image href="/etc/passwd.png"/><rect id="kept"/>')))
    assert 'id="kept"' in inner
    assert "passwd" not in inner


def test_svgs_in_svgs_are_left_out_from_some_depth_on():
    inner = embedded(embedded(cleaned(nested(nested(nested('<rect id="too-deep"/>') + '<rect id="two"/>')))))
    assert 'id="two"' in inner
    assert "data:" not in inner


def test_elements_may_not_nest_without_end():
    assert cleaned("<g>" * (MOST_DEPTH - 1) + "</g>" * (MOST_DEPTH - 1))
    with pytest.raises(MediaError):
        cleaned("<g>" * 100_000 + "</g>" * 100_000)


@pytest.mark.parametrize(
    "content", [b"", b"<svg", b"<html></html>", b"<svg><g></svg>", b"\xff\xfe\x00", b"<svg a='1' a='2'/>", b"no xml"]
)
def test_what_is_no_svg_is_an_error(content):
    with pytest.raises(MediaError):
        clean(content, LIMIT)


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="30" height="20"', (30, 20)),
        ('width="30px" height="20.4px"', (30, 20)),
        ('width="1in" height="72pt"', (96, 96)),
        ('width="25.4mm" height="2.54cm"', (96, 96)),
        ('width="100%" height="100%" viewBox="0 0 300 200"', (300, 200)),
        ('viewBox="-5,-5,300,200"', (300, 200)),
        ('width="60" viewBox="0 0 300 200"', (60, 40)),
        ('height="60" viewBox="0 0 300 200"', (90, 60)),
        ('width="0.1" height="1e9"', (1, 1_000_000)),
        ('width="30"', None),
        ('width="-3" height="5"', None),
        ('width="banana" viewBox="0 0 nan inf"', None),
        ('viewBox="0 0 0 0"', None),
        ("", None),
    ],
)
def test_the_natural_size_is_the_one_that_the_root_tells(attributes, size):
    assert clean(f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}/>'.encode(), LIMIT).size == size


def test_missing_namespaces_are_added():
    text = clean(b'<svg><use xlink:href="#a"/></svg>', LIMIT).text
    assert 'xmlns="http://www.w3.org/2000/svg"' in text
    assert 'xmlns:xlink="http://www.w3.org/1999/xlink"' in text


def test_other_encodings_are_read():
    content = f'<?xml version="1.0" encoding="ISO-8859-1"?>{HEAD}><text>Größe</text></svg>'
    assert "Größe" in clean(content.encode("latin-1"), LIMIT).text
    assert "Größe" in clean(content.replace("ISO-8859-1", "UTF-16").encode("utf-16"), LIMIT).text


def test_text_is_noticed_also_in_an_svg_within():
    assert clean(f"{HEAD}><text>a</text></svg>".encode(), LIMIT).has_text
    assert clean(f"{HEAD}>{nested('<text>a</text>')}</svg>".encode(), LIMIT).has_text
    assert not clean(f"{HEAD}><rect/></svg>".encode(), LIMIT).has_text
