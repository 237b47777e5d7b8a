"""Each provider's files: uploaded, named, fetched back where it gives them, forgotten; and what it refuses."""

import anyio
import pytest

from gateway.content.provider_files import GeminiFiles, OpenAIFiles, ProviderFiles
from gateway.errors import ProviderFileError

pytestmark = pytest.mark.anyio

PDF = b"%PDF-1.4 a document"
SCHEMES = ("openai-file", "anthropic-file", "gemini-file", "fal-file")


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_content_is_uploaded_whole_with_its_type_and_a_name(providers, scheme):
    async with providers() as running, running.files() as files:
        uri = await files.upload(scheme, PDF, media_type="application/pdf", name="../report: 2026")
        assert uri.startswith(f"{scheme}:")
        [kept] = running.server.files.values()
        assert (kept.content, kept.media_type, kept.name) == (PDF, "application/pdf", "report 2026.pdf")
        assert running.server.foreign_keys == []


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_equal_content_is_uploaded_once_however_many_ask_at_once(providers, scheme):
    async with providers() as running, running.files() as files:
        uris = set[str]()

        async def one() -> None:
            uris.add(await files.upload(scheme, PDF, media_type="application/pdf"))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
        uris.add(await files.upload(scheme, PDF, media_type="application/pdf"))
        assert len(uris) == 1
        assert running.uploads() == 1
        await files.upload(scheme, PDF + b"!", media_type="application/pdf")
        assert running.uploads() == 2


async def test_what_was_uploaded_is_uploaded_anew_once_its_time_is_over(providers, monkeypatch):
    monkeypatch.setattr(OpenAIFiles, "lives", -1.0)
    async with providers() as running, running.files() as files:
        first = await files.upload("openai-file", PDF, media_type="application/pdf")
        assert await files.upload("openai-file", PDF, media_type="application/pdf") != first


@pytest.mark.parametrize("scheme", ["openai-file", "anthropic-file"])
async def test_a_deleted_file_is_forgotten_here_too(providers, scheme):
    async with providers() as running, running.files() as files:
        uri = await files.upload(scheme, PDF, media_type="application/pdf")
        await files.delete(uri)
        assert running.server.files == {}
        assert await files.upload(scheme, PDF, media_type="application/pdf") != uri
        with pytest.raises(ProviderFileError, match="No such File object"):
            await files.delete(uri)


@pytest.mark.parametrize("scheme", ["openai-file", "anthropic-file", "gemini-file"])
async def test_only_what_a_model_made_is_given_back(providers, scheme):
    async with providers() as running, running.files() as files:
        uri = await files.upload(scheme, PDF, media_type="application/pdf")
        with pytest.raises(ProviderFileError, match=r"answered 400: .*(download|Download)"):
            await files.fetch(uri)
        next(iter(running.server.files.values())).made_by_model = True
        assert (await files.fetch(uri)).content == PDF
        assert running.server.foreign_keys == []


async def test_what_lies_at_fal_is_fetched_without_the_key(providers):
    async with providers() as running, running.files() as files:
        uri = await files.upload("fal-file", PDF, media_type="application/pdf")
        assert (await files.fetch(uri)).content == PDF
        assert running.server.foreign_keys == []
        for elsewhere in ("http://169.254.169.254/latest", "https://fal.media.example.com/x", "file:///etc/passwd"):
            with pytest.raises(ProviderFileError, match="not an address of fal"):
                await files.fetch(f"fal-file:{elsewhere}")


async def test_a_file_that_gemini_still_processes_is_waited_for(providers):
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async with providers(processing=2) as running:
        host = GeminiFiles(running.environ["GEMINI_API_KEY"], running.url, pause=pause)
        async with ProviderFiles(host) as files:
            uri = await files.upload("gemini-file", b"film", media_type="video/mp4")
        assert uri.startswith("gemini-file:files/")
        assert len(waits) == 2


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_wrong_key_is_told_and_never_shown(providers, scheme):
    async with providers(key="sk-secret-wrong") as running, running.files() as files:
        with pytest.raises(ProviderFileError, match=r"answered 40[13]") as raised:
            await files.upload(scheme, PDF, media_type="application/pdf")
        assert raised.value.remedy == "check its API key"
        # OpenAI repeats the key in its answer.
        assert "sk-secret-wrong" not in str(raised.value)
        assert running.server.files == {}


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_provider_out_of_reach_is_a_clear_error(providers, scheme):
    async with providers() as running:
        environ = running.environ
    async with ProviderFiles.from_environment(environ) as files:
        with pytest.raises(ProviderFileError, match="cannot be reached"):
            await files.upload(scheme, PDF, media_type="application/pdf")


async def test_a_file_above_the_limit_is_not_read_to_its_end(providers):
    async with providers() as running, running.files() as files:
        uri = await files.upload("fal-file", b"x" * 10_000, media_type="text/plain")
        with pytest.raises(ProviderFileError, match="larger than 1,000 bytes"):
            await files.fetch(uri, max_bytes=1_000)


async def test_only_providers_whose_key_is_known_are_there():
    async with ProviderFiles.from_environment({"GOOGLE_API_KEY": "x"}) as files:
        assert files.schemes == {"gemini-file"}
        with pytest.raises(ProviderFileError, match=r"'openai-file' can be reached \(there are: gemini-file\)"):
            await files.upload("openai-file", PDF, media_type="application/pdf")
