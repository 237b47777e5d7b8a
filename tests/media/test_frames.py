from io import BytesIO

import pytest

from gateway.core.model.effects import Crop, ImageTarget
from gateway.media import frames

JOBS = [
    frames.Job(b"", "image/png", ImageTarget(), None, 20.0),
    frames.Job(b"\0" * 99, "image/svg+xml", ImageTarget(("image/webp",), 5, 7), Crop(-1, 2, 3, 4), 0.5),
]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_was_packed_is_read_as_it_was(job):
    stream = BytesIO((frames.pack_job(job) + job.content) * 2)
    for _ in range(2):
        frame = frames.read(stream)
        assert frame is not None
        assert frames.unpack_job(*frame) == job
    assert frames.read(stream) is None


def test_a_stream_that_ends_within_a_frame_has_ended():
    whole = frames.pack_job(JOBS[1]) + JOBS[1].content
    for size in range(len(whole)):
        assert frames.read(BytesIO(whole[:size])) is None
