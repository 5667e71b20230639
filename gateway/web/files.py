"""The page's files, held in memory, with headers that keep it from running anything but them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI, Request, Response

FOLDER = Path(__file__).parent
PAGE = "index.html"
MEDIA_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    # Not even the page's own scripts can turn a string into markup.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(POLICY),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Kept, but asked after each time: files of two versions never meet in one page.
    "Cache-Control": "no-cache",
}
NOT_MODIFIED = 304


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    media_type: str
    tag: str

    @classmethod
    def read(cls, path: Path) -> "File":
        content = path.read_bytes()
        tag = hashlib.sha256(content).hexdigest()[:32]
        return cls(content, MEDIA_TYPES[path.suffix], f'"{tag}"')

    async def respond(self, request: Request) -> Response:
        headers = {**HEADERS, "ETag": self.tag}
        if self._is_held(request):
            return Response(status_code=NOT_MODIFIED, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)

    def _is_held(self, request: Request) -> bool:
        given = ",".join(request.headers.getlist("if-none-match")).split(",")
        tags = {tag.strip().removeprefix("W/") for tag in given}
        return self.tag in tags or "*" in tags


def install(app: FastAPI) -> None:
    """Serve the page at `/` and what it loads under `/web/`. Nothing else of the folder."""
    for path in FOLDER.iterdir():
        if path.suffix in MEDIA_TYPES:
            address = "/" if path.name == PAGE else f"/web/{path.name}"
            app.add_route(address, File.read(path).respond, include_in_schema=False)
