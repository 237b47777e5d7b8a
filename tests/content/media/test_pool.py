import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import anyio
import anyio.lowlevel
import pybase64
import pytest
from PIL import Image

from gateway.config.content_settings import MediaSettings
from gateway.content.media import MediaWorkers, pool, process
from gateway.core.model.effects import Crop, Fitted, ImageTarget
from gateway.errors import MediaError

pytestmark = pytest.mark.anyio

SMALL = ImageTarget(max_edge=20)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def picture(encode) -> bytes:
    return encode(Image.new("RGB", (80, 40), "red"), "PNG")


def decoded(fitted: Fitted) -> Image.Image:
    image = Image.open(BytesIO(pybase64.b64decode(fitted.data)))
    image.load()
    assert (image.size, image.get_format_mimetype()) == (fitted.pixels, fitted.media_type)
    return image


async def ended(pid: int) -> None:
    """Wait until the process, anyone's child, is no more."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(watch)
    finally:
        os.close(watch)


def only(workers: MediaWorkers) -> int:
    (pid,) = workers.pids
    return pid


# --------------------------------------------------------------------------------------------------------- the work


async def test_an_image_is_fitted_in_a_worker_that_is_then_used_again(picture):
    async with MediaWorkers(MediaSettings()) as workers:
        assert workers.pids == frozenset()
        with anyio.fail_after(60):
            first = await workers.fit_image(picture, "image/png", SMALL)
            pid = only(workers)
            second = await workers.fit_image(picture, "image/png", ImageTarget(("image/jpeg",)), Crop(0, 0, 10, 5))
        assert only(workers) == pid
    assert decoded(first).getpixel((5, 5)) == (255, 0, 0)
    assert (first.pixels, first.original) == ((20, 10), (80, 40))
    assert (second.media_type, decoded(second).size) == ("image/jpeg", (10, 5))


async def test_what_an_image_is_counts_and_not_what_it_is_called(picture):
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            assert (await workers.fit_image(picture, "image/jpeg", SMALL)).media_type == "image/png"
            assert (await workers.fit_image(picture, "application/octet-stream", SMALL)).media_type == "image/png"


async def test_gzipped_svg_and_svg_in_utf_16_are_known_by_their_declared_type():
    import gzip

    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"/>'
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            for content in (gzip.compress(svg.encode()), svg.encode("utf-16")):
                fitted = await workers.fit_image(content, "image/svg+xml", SMALL)
                assert (fitted.pixels, fitted.original) == ((20, 7), (90, 30))


async def test_there_are_never_more_workers_than_allowed(picture):
    async with MediaWorkers(MediaSettings(workers=2)) as workers:
        seen: set[int] = set()

        async def fit() -> None:
            await workers.fit_image(picture, "image/png", SMALL)
            assert len(workers.pids) <= 2
            seen.update(workers.pids)

        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                for _ in range(12):
                    tasks.start_soon(fit)
    assert 1 <= len(seen) <= 2


async def test_the_event_loop_goes_on_during_a_big_resize(screenshot, encode):
    content = encode(screenshot(4_000, 3_000), "PNG")
    async with MediaWorkers(MediaSettings()) as workers:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await anyio.sleep(0.001)
                ticks += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            with anyio.fail_after(60):
                fitted = await workers.fit_image(content, "image/png", ImageTarget(max_edge=1_568))
            tasks.cancel_scope.cancel()
    assert fitted.pixels == (1_568, 1_176)
    assert ticks > 20


async def test_a_large_image_without_any_limit_but_the_pixels_fits_into_the_memory(encode):
    content = encode(Image.new("RGBA", (7_700, 7_700), (200, 100, 50, 128)), "PNG", compress_level=1)
    async with MediaWorkers(MediaSettings(timeout=120)) as workers:
        with anyio.fail_after(200):
            fitted = await workers.fit_image(content, "image/png", ImageTarget(("image/jpeg",), max_edge=1_000))
    assert fitted.pixels == (1_000, 1_000)


# ------------------------------------------------------------------------------------------------ judged beforehand


async def test_a_pixel_bomb_is_refused_by_its_header_without_any_worker(bomb):
    async with MediaWorkers(MediaSettings()) as workers:
        with pytest.raises(MediaError) as caught:
            await workers.fit_image(bomb, "image/png", SMALL)
        assert workers.pids == frozenset()
    assert "30,000 x 30,000" in str(caught.value)
    assert "60,000,000" in str(caught.value)


async def test_too_many_bytes_are_refused_without_any_worker(picture):
    async with MediaWorkers(MediaSettings(max_input_bytes=100)) as workers:
        with pytest.raises(MediaError) as caught:
            await workers.fit_image(picture + bytes(9_999), "image/png", SMALL)
        assert workers.pids == frozenset()
    assert f"{len(picture) + 9_999:,} bytes" in str(caught.value)
    assert "limit of 100" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "declared", "named"),
    [
        (b"%PDF-1.7", "image/png", "application/pdf"),
        (b"hello", "text/plain", "text/plain"),
        (b"hello", "", "unknown type"),
        (b"", "image/heic", "empty"),
        (b"hello", "image/jxl", "image/jxl"),
        (b"\x1f\x8b\x08", "application/gzip", "application/gzip"),
    ],
)
async def test_what_cannot_be_read_as_an_image_is_refused_by_name(content, declared, named):
    async with MediaWorkers(MediaSettings()) as workers:
        with pytest.raises(MediaError) as caught:
            await workers.fit_image(content, declared, SMALL)
        assert workers.pids == frozenset()
    assert named in str(caught.value)


async def test_workers_that_are_not_running_say_so(picture):
    workers = MediaWorkers(MediaSettings())
    with pytest.raises(MediaError):
        await workers.fit_image(picture, "image/png", SMALL)
    async with workers:
        pass
    with pytest.raises(MediaError):
        await workers.fit_image(picture, "image/png", SMALL)


# ---------------------------------------------------------------------------------------------------- hostile input


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
async def test_a_truncated_image_is_an_error_and_the_worker_goes_on(photo, encode, picture, name):
    content = encode(photo(300, 200), name)
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            for share in (3, 2):
                with pytest.raises(MediaError):
                    await workers.fit_image(content[: len(content) // share], "", SMALL)
            pid = only(workers)
            await workers.fit_image(picture, "image/png", SMALL)
            assert only(workers) == pid


async def test_a_job_over_the_time_limit_is_killed_and_the_next_one_works(endless, picture):
    async with MediaWorkers(MediaSettings(workers=1, timeout=2)) as workers:
        with anyio.fail_after(120):
            await workers.fit_image(picture, "image/png", SMALL)
            pid = only(workers)
            with pytest.raises(MediaError) as caught:
                await workers.fit_image(endless, "image/svg+xml", ImageTarget())
            assert workers.pids == frozenset()
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
            await workers.fit_image(picture, "image/png", SMALL)
    assert "2 s" in str(caught.value)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT"])
async def test_a_worker_that_dies_during_a_job_costs_that_job_alone(endless, picture, name):
    caught: list[MediaError] = []

    async def doomed() -> None:
        with pytest.raises(MediaError) as error:
            await workers.fit_image(endless, "image/svg+xml", ImageTarget())
        caught.append(error.value)

    async with MediaWorkers(MediaSettings(workers=1, timeout=300)) as workers:
        with anyio.fail_after(120):
            await workers.fit_image(picture, "image/png", SMALL)
            pid = only(workers)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(doomed)
                await anyio.wait_all_tasks_blocked()
                os.kill(pid, signal.Signals[name])
            await workers.fit_image(picture, "image/png", SMALL)
            assert only(workers) != pid
    assert name in str(caught[0])


async def test_a_worker_that_died_while_idle_is_replaced_unnoticed(picture):
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            await workers.fit_image(picture, "image/png", SMALL)
            pid = only(workers)
            os.kill(pid, signal.SIGKILL)
            while workers.pids:
                await anyio.lowlevel.checkpoint()
            await workers.fit_image(picture, "image/png", SMALL)
            assert only(workers) != pid


async def test_a_cancelled_job_ends_its_worker(endless, picture):
    async with MediaWorkers(MediaSettings(workers=1, timeout=300)) as workers:
        with anyio.fail_after(120):
            await workers.fit_image(picture, "image/png", SMALL)
            pid = only(workers)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workers.fit_image, endless, "image/svg+xml", ImageTarget())
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            assert workers.pids == frozenset()
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
            await workers.fit_image(picture, "image/png", SMALL)


async def test_a_job_over_the_memory_limit_is_an_error_and_the_next_one_works(encode, picture):
    content = encode(Image.new("L", (7_000, 7_000)), "PNG")
    async with MediaWorkers(MediaSettings(workers=1, memory_bytes=200 * 1024 * 1024)) as workers:
        with anyio.fail_after(120):
            with pytest.raises(MediaError) as caught:
                await workers.fit_image(content, "image/png", ImageTarget(("image/webp",)))
            await workers.fit_image(picture, "image/png", SMALL)
    assert "memory" in str(caught.value)


async def test_an_svg_over_the_memory_limit_is_an_error_and_the_next_one_works(picture):
    layers = '<g opacity="0.5"><rect width="4000" height="4000"/>' * 200 + "</g>" * 200
    content = f'<svg xmlns="http://www.w3.org/2000/svg" width="4000" height="4000">{layers}</svg>'.encode()
    async with MediaWorkers(MediaSettings(workers=1, memory_bytes=300 * 1024 * 1024)) as workers:
        with anyio.fail_after(120):
            with pytest.raises(MediaError):
                await workers.fit_image(content, "image/svg+xml", ImageTarget(max_edge=4_000))
            await workers.fit_image(picture, "image/png", SMALL)


async def test_a_bomb_of_nested_uses_is_an_error_and_the_next_one_works(uses_bomb, picture):
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        with anyio.fail_after(120):
            with pytest.raises(MediaError):
                await workers.fit_image(uses_bomb, "image/svg+xml", ImageTarget())
            await workers.fit_image(picture, "image/png", SMALL)


async def test_an_animation_bomb_is_shown_by_its_first_frame(animation_bomb):
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            assert (await workers.fit_image(animation_bomb, "image/gif", SMALL)).pixels == (20, 20)


# ------------------------------------------------------------------------------------------------- lives of workers


async def test_leaving_ends_all_workers_those_with_a_job_too(endless, picture):
    async def doomed() -> None:
        with pytest.raises(MediaError):
            await workers.fit_image(endless, "image/svg+xml", ImageTarget())

    workers = MediaWorkers(MediaSettings(workers=1, timeout=300))
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks, workers:
            await workers.fit_image(picture, "image/png", SMALL)
            pid = only(workers)
            tasks.start_soon(doomed)
            await anyio.wait_all_tasks_blocked()
    assert workers.pids == frozenset()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_an_error_among_the_workers_leaves_as_it_is(picture):
    workers = MediaWorkers(MediaSettings())

    async def fail() -> None:
        async with workers:
            await workers.fit_image(picture, "image/png", SMALL)
            raise KeyError("mine")

    with anyio.fail_after(60), pytest.raises(KeyError):
        await fail()
    assert workers.pids == frozenset()


async def test_cancelling_everything_ends_all_workers(picture):
    with anyio.CancelScope() as everything:
        async with MediaWorkers(MediaSettings()) as workers:
            await workers.fit_image(picture, "image/png", SMALL)
            pid = only(workers)
            everything.cancel()
            await anyio.sleep_forever()
    assert workers.pids == frozenset()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_worker_without_work_is_stopped(picture):
    async with MediaWorkers(MediaSettings(), idle=0.01) as workers:
        with anyio.fail_after(60):
            await workers.fit_image(picture, "image/png", SMALL)
            for pid in workers.pids:
                await ended(pid)
            await workers.fit_image(picture, "image/png", SMALL)


async def test_a_worker_is_replaced_after_many_jobs(picture, monkeypatch):
    monkeypatch.setattr(pool, "JOBS_PER_WORKER", 2)
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            await workers.fit_image(picture, "image/png", SMALL)
            assert len(workers.pids) == 1
            await workers.fit_image(picture, "image/png", SMALL)
            assert workers.pids == frozenset()


async def test_a_worker_knows_nothing_of_the_gateways_secrets(picture, monkeypatch):
    monkeypatch.setenv("MCP_GATEWAY_TOKEN", "very-secret")
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            await workers.fit_image(picture, "image/png", SMALL)
        environment = await anyio.Path(f"/proc/{only(workers)}/environ").read_bytes()
    assert b"PYTHONPATH=" in environment
    assert b"secret" not in environment


async def test_a_worker_imports_nothing_from_the_current_folder(picture, tmp_path, monkeypatch):
    for name in ("gateway", "PIL", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("import os; os._exit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60):
            assert (await workers.fit_image(picture, "image/png", SMALL)).pixels == (20, 10)


async def test_a_worker_that_cannot_start_is_an_error_that_names_the_cause(picture, monkeypatch):
    async with MediaWorkers(MediaSettings(memory_bytes=1_000_000)) as workers:
        with anyio.fail_after(60), pytest.raises(MediaError) as caught:
            await workers.fit_image(picture, "image/png", SMALL)
        assert "no media worker could be started" in str(caught.value)
        assert "memory_bytes" in str(caught.value)
        assert workers.pids == frozenset()
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(MediaError) as caught:
            await workers.fit_image(picture, "image/png", SMALL)
        assert "/no/such/python" in str(caught.value)


@pytest.mark.parametrize(
    "program",
    [
        "print('hello, I am no worker')",
        "import sys; sys.stdout.write('{')",
        "import os; os.write(1, b'\\0\\0\\0\\2' + bytes(8) + b'no')",
        "import os; os.write(1, b'\\0\\0\\0\\2' + b'\\xff' * 8 + b'{}')",
        "import os; os.close(1); import time; time.sleep(60)",
    ],
)
async def test_a_worker_that_answers_nonsense_is_an_error(picture, monkeypatch, program):
    monkeypatch.setattr(process, "_REAP_SECONDS", 1)
    monkeypatch.setattr(process, "_command", lambda _: [sys.executable, "-c", program])
    async with MediaWorkers(MediaSettings()) as workers:
        with anyio.fail_after(60), pytest.raises(MediaError) as caught:
            await workers.fit_image(picture, "image/png", SMALL)
        assert workers.pids == frozenset()
    assert "no media worker could be started" in str(caught.value)


GATEWAY = """
import sys, anyio
from gateway.config.content_settings import MediaSettings
from gateway.core.model.effects import ImageTarget
from gateway.content.media import MediaWorkers

async def main():
    idle, busy = sys.stdin.buffer.read().split(b"----")
    async with MediaWorkers(MediaSettings(workers=1, timeout=2)) as workers:
        await workers.fit_image(idle, "image/svg+xml", ImageTarget())
        async with anyio.create_task_group() as tasks:
            if busy:
                tasks.start_soon(workers.fit_image, busy, "image/svg+xml", ImageTarget())
            await anyio.wait_all_tasks_blocked()
            print(*workers.pids, flush=True)
            await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.parametrize("is_busy", [False, True])
async def test_workers_do_not_outlive_a_gateway_that_is_killed(endless, is_busy):
    idle = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    with anyio.fail_after(120):
        async with await anyio.open_process(
            [sys.executable, "-c", GATEWAY], cwd=ROOT, stderr=subprocess.DEVNULL
        ) as gateway:
            assert gateway.stdin is not None
            assert gateway.stdout is not None
            await gateway.stdin.send(idle + b"----" + (endless if is_busy else b""))
            await gateway.stdin.aclose()
            pid = int(await gateway.stdout.receive())
            gateway.kill()
            await gateway.wait()
            await ended(pid)


def test_a_worker_loads_neither_the_sdk_nor_pydantic_nor_the_pool():
    program = "import sys, gateway.content.media.worker, gateway.content.media.images; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"mcp", "mcp_types", "pydantic", "anyio", "asyncio", "gateway.content.media.pool"} & set(
        loaded.stdout.split()
    )
