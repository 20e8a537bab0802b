"""Guard of the studio: it serves one browser on this machine, and only its own pages.

The printed address holds a token that works once and becomes a cookie. Every request must name
this server as its host, so that no other name can be made to point here, and every request that
changes something must come from this server's own pages.
"""

from __future__ import annotations

import hmac
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
RELEASE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""For pages of a release, which carry their style with them and may come from anybody."""

HEADERS = {  # so that nothing is stored, framed, sniffed or fetched from elsewhere
    "content-security-policy": PAGE_POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
SAFE = ("GET", "HEAD")
LONGEST_PATH, LONGEST_QUERY = 300, 300
NO_KEY = "Open the address in the terminal. It works once; for a new one, start the studio again."


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app, self.port = app, port
        self.token: str | None = uuid.uuid4().hex
        self.key = uuid.uuid4().hex + uuid.uuid4().hex
        self.cookie = f"tallyveil-{port}"
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks another protocol

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refuse(Request(scope)) or self.app
        await answer(scope, receive, send_guarded)

    def _refuse(self, request: Request) -> Response | None:
        """Return the answer to a request that may not pass, or None."""
        scope, hosts = request.scope, request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return PlainTextResponse("This server does not go by that name.", 421)
        if len(scope["raw_path"]) > LONGEST_PATH or len(scope["query_string"]) > LONGEST_QUERY:
            return PlainTextResponse("The address is too long.", 414)
        if not _is_own(request.method, request.headers):
            return PlainTextResponse("This request does not come from a page of the studio.", 403)
        has_key = _is_same(request.cookies.get(self.cookie, ""), self.key)
        if scope["path"] == "/open" and request.method == "GET":
            return self._open(request, has_key)
        return None if has_key else PlainTextResponse(NO_KEY, 403)

    def _open(self, request: Request, has_key: bool) -> Response:
        """Turn the token into a cookie, once."""
        token = request.query_params.get("token", "")
        if self.token is not None and _is_same(token, self.token):
            self.token = None
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.key, httponly=True, samesite="strict", path="/")
            return answer
        return RedirectResponse("/", 303) if has_key else PlainTextResponse(NO_KEY, 403)


def _is_own(method: str, headers: Headers) -> bool:
    """Return True if a request comes from our own pages, or only opens one of them."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    home = f"http://{headers['host']}"
    if method in SAFE:
        opens = headers.get("sec-fetch-mode", "navigate") == "navigate"
        return origin in (None, home) and (site in (None, "same-origin", "none") or opens)
    return origin == home and site in (None, "same-origin")


def _is_same(text: str, secret: str) -> bool:
    """Compare in a time that does not depend on where the difference is."""
    return hmac.compare_digest(text.encode(errors="replace"), secret.encode())
