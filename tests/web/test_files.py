"""What the page's files are sent with."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from gateway.web import files

NAMES = sorted(path.name for path in files.FOLDER.iterdir() if path.suffix in files.MEDIA_TYPES)
ADDRESSES = ["/" if name == files.PAGE else f"/web/{name}" for name in NAMES]


@pytest_asyncio.fixture
async def served() -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    files.install(app)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://sluice") as client:
        yield client


@pytest.mark.parametrize("address", ADDRESSES)
async def test_each_file_comes_with_the_policy_and_its_kind(
    served: httpx.AsyncClient, address: str
) -> None:
    response = await served.get(address)
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    suffix = ".html" if address == "/" else f".{address.rpartition('.')[2]}"
    assert response.headers["content-type"] == files.MEDIA_TYPES[suffix]


@pytest.mark.parametrize("held", ["{0}", "W/{0}", '"other", {0}', "*"])
async def test_a_file_that_the_browser_holds_is_not_sent_again(
    served: httpx.AsyncClient, held: str
) -> None:
    first = await served.get("/web/page.js")
    given = {"If-None-Match": held.format(first.headers["etag"])}
    again = await served.get("/web/page.js", headers=given)
    assert first.headers["cache-control"] == again.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


async def test_a_file_of_another_version_is_sent(served: httpx.AsyncClient) -> None:
    response = await served.get("/web/page.js", headers={"If-None-Match": '"other"'})
    assert response.status_code == 200
    assert response.content


@pytest.mark.parametrize(
    "address",
    [
        "/web/",
        "/web/index.html",
        "/web/files.py",
        "/web/__init__.py",
        "/web/../routes.py",
        "/web/%2e%2e/routes.py",
    ],
)
async def test_nothing_else_of_the_folder_is_served(
    served: httpx.AsyncClient, address: str
) -> None:
    assert (await served.get(address)).status_code == 404


async def test_the_page_needs_nothing_from_elsewhere_and_nothing_inline() -> None:
    page = (files.FOLDER / files.PAGE).read_text()
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert set(loaded) <= {f"web/{name}" for name in NAMES}
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)
