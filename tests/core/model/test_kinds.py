import pytest

from gateway.core.model.kinds import kind_of


@pytest.mark.parametrize(
    ("media_type", "name", "kind"),
    [
        ("image/png", None, "image"),
        ("image/svg+xml", None, "image"),
        ("IMAGE/PNG; q=1", None, "image"),
        ("audio/wav", None, "audio"),
        ("video/mp4", None, "video"),
        ("application/pdf", None, "document"),
        ("text/plain", None, "document"),
        ("text/csv", "part.step", "document"),
        ("application/json", None, "document"),
        ("application/ld+json", None, "document"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", None, "document"),
        ("application/zip", None, "other"),
        ("application/wasm", "x.png", "image"),
        ("model/gltf-binary", None, "3d"),
        ("model/stl", "x.bin", "3d"),
        ("model/vnd.usdz+zip", None, "3d"),
        ("model/step", None, "cad"),
        ("image/vnd.dwg", None, "cad"),
        ("application/dxf", None, "cad"),
        ("model/iges", None, "cad"),
        (None, None, "other"),
        ("", "", "other"),
        ("application/octet-stream", "scene.GLB", "3d"),
        ("application/octet-stream", "a/b/part.obj", "3d"),
        ("text/plain", "cube.obj", "3d"),
        ("text/plain", "cube.stl", "3d"),
        ("text/plain", "plan.dxf", "cad"),
        (None, "plan.dwg", "cad"),
        (None, "part.stp", "cad"),
        (None, "part.igs", "cad"),
        ("text/plain", "notes", "document"),
        ("application/json", "scene.gltf", "3d"),
        ("application/zip", "print.3mf", "3d"),
        (None, "clip.mov", "video"),
        (None, "speech.opus", "audio"),
        (None, "report.docx", "document"),
        (None, "noending", "other"),
        (None, ".", "other"),
    ],
)
def test_the_type_tells_the_kind_and_the_name_where_the_type_says_little(media_type, name, kind):
    assert kind_of(media_type, name) == kind
