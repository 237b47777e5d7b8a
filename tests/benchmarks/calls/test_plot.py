from xml.etree import ElementTree

from benchmarks.calls.figures import Ratio
from benchmarks.calls.plot import WIDTH, svg

SVG = "{http://www.w3.org/2000/svg}"


def test_each_way_is_a_bar_from_one_to_its_median():
    drawing = ElementTree.fromstring(
        svg(
            "a < b",
            {"text": {"ours": Ratio(0.4, 0.5, 0.6), "theirs": Ratio(1, 2, 3)}, "1 MB": {"ours": Ratio(1, 1, 1)}},
        )
    )
    assert drawing.findtext(f"{SVG}title") == "a < b"
    keys, bars = [], []
    for each in drawing.iter(f"{SVG}rect"):
        (keys if each.get("height") == "10" else bars).append(each)
    assert len(keys) == 2
    assert [bar.get("fill") for bar in bars] == [keys[0].get("fill"), keys[1].get("fill"), keys[0].get("fill")]
    below, above, none = bars
    one = float(above.get("x", ""))
    assert float(below.get("x", "")) + float(below.get("width", "")) == one == float(none.get("x", ""))


def test_what_is_beyond_the_scale_stays_in_the_picture():
    drawing = ElementTree.fromstring(svg("", {"text": {"ours": Ratio(0.0001, 5_000, 50_000)}}))
    for bar in drawing.iter(f"{SVG}rect"):
        assert 0 <= float(bar.get("x", "")) <= float(bar.get("x", "")) + float(bar.get("width", "")) <= WIDTH


def test_a_plot_of_nothing_is_one_too():
    assert ElementTree.fromstring(svg("nothing", {})).tag == f"{SVG}svg"
