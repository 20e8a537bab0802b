"""Who may talk to the studio: one browser on this machine, and only from the studio's own pages.

The printed address holds a token that works once and becomes a cookie. Every request must name
this server as its host, so that no other name can be made to point here, and every request that
changes something must come from this server's own pages.
"""

from __future__ import annotations

import hmac
import uuid
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
RELEASE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""For pages of a release, which carry their style with them and may come from anybody."""

HEADERS = {
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
                _add_headers(message)
            await send(message)

        refused = self._refuse(scope)
        if refused is not None:
            await refused(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> PlainTextResponse | RedirectResponse | None:
        """Return the answer to a request that may not pass, or None."""
        sent = [(name.lower(), value) for name, value in scope["headers"]]
        headers = {name: value.decode("latin-1") for name, value in sent}
        if sum(name == b"host" for name, _ in sent) != 1 or headers[b"host"] not in self.hosts:
            return PlainTextResponse("This server does not go by that name.", 421)
        if len(scope["raw_path"]) > LONGEST_PATH or len(scope["query_string"]) > LONGEST_QUERY:
            return PlainTextResponse("The address is too long.", 414)
        if not self._is_own(scope["method"], headers):
            return PlainTextResponse("This request does not come from a page of the studio.", 403)
        has_key = self._has_key(headers.get(b"cookie", ""))
        if scope["path"] == "/open" and scope["method"] == "GET":
            return self._open(scope, has_key)
        if not has_key:
            return PlainTextResponse(NO_KEY, 403)
        return None

    def _is_own(self, method: str, headers: dict[bytes, str]) -> bool:
        """Return True if a request comes from our own pages, or only opens one of them."""
        site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
        home = f"http://{headers[b'host']}"
        if method in SAFE:
            opens = headers.get(b"sec-fetch-mode", "navigate") == "navigate"
            return origin in (None, home) and (site in (None, "same-origin", "none") or opens)
        return origin == home and site in (None, "same-origin")

    def _has_key(self, text: str) -> bool:
        try:
            sent = SimpleCookie(text).get(self.cookie)
        except CookieError:
            return False
        return sent is not None and hmac.compare_digest(sent.value.encode(), self.key.encode())

    def _open(self, scope: Scope, has_key: bool) -> PlainTextResponse | RedirectResponse:
        """Turn the token into a cookie, once."""
        query = scope["query_string"].decode("latin-1")
        token = parse_qs(query).get("token", [""])[0].encode()
        if self.token is not None and hmac.compare_digest(token, self.token.encode()):
            self.token = None
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.key, httponly=True, samesite="strict", path="/")
            return answer
        return RedirectResponse("/", 303) if has_key else PlainTextResponse(NO_KEY, 403)


def _add_headers(message: Message) -> None:
    """Add headers so that nothing is stored, framed, sniffed or fetched from elsewhere."""
    present = {name.lower() for name, _ in message["headers"]}
    added = {**HEADERS, "content-security-policy": PAGE_POLICY}
    message["headers"] = [
        *message["headers"],
        *((n.encode(), v.encode()) for n, v in added.items() if n.encode() not in present),
    ]
