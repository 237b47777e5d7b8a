import json
from io import BytesIO

import pytest

from gateway.content.media import frames
from gateway.core.model.effects import AudioTarget, Crop, ImageTarget

JOBS = [
    frames.WorkerJob("probe", b"", "image/png", {}, 20.0),
    frames.WorkerJob("fit", b"\0" * 99, "image/svg+xml", {"crop": [1, 2], "x": None}, 0.5),
]
IMAGE_TARGETS = [ImageTarget(), ImageTarget(("image/webp",), 5, 7, animation=False)]
AUDIO_TARGETS = [AudioTarget(), AudioTarget((), 5, 7)]


@pytest.mark.parametrize("target", IMAGE_TARGETS)
def test_an_image_target_arrives_as_it_was(target):
    assert frames.unpack_image_target(json.loads(json.dumps(frames.packed(target)))) == target


@pytest.mark.parametrize("target", AUDIO_TARGETS)
def test_an_audio_target_arrives_as_it_was(target):
    assert frames.audio_target(json.loads(json.dumps(frames.packed(target)))) == target


@pytest.mark.parametrize("crop", [None, Crop(-1, 2, 3, 4)])
def test_a_crop_arrives_as_it_was(crop):
    assert frames.crop(json.loads(json.dumps(frames.packed(crop)))) == crop


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_was_packed_is_read_as_it_was(job):
    stream = BytesIO((frames.pack_job(job) + job.content) * 2)
    for _ in range(2):
        frame = frames.read_frame(stream)
        assert frame is not None
        assert frames.unpack_job(*frame) == job
    assert frames.read_frame(stream) is None


def test_a_stream_that_ends_within_a_frame_has_ended():
    whole = frames.pack_job(JOBS[1]) + JOBS[1].content
    for size in range(len(whole)):
        assert frames.read_frame(BytesIO(whole[:size])) is None
