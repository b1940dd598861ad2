"""Who may see the pages, and who may change something.

Any program of the machine, and any page that its browser shows, can send requests to a port of
127.0.0.1. What protects the pages:

- a random token, which the first request has in its URL and the others in a cookie that scripts
  cannot read and that requests from other sites do not carry;
- the name in the header `Host`, because a name of an attacker may resolve to 127.0.0.1 ("DNS
  rebinding");
- a second token in every form that changes something, and the header `Origin`, in case the cookie
  was sent after all;
- a content security policy without inline scripts and styles, in case a name contains markup.

Source: OWASP Cheat Sheet Series, "Cross-Site Request Forgery Prevention" and "Content Security
Policy".
"""

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders, QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eventhub_checkpoints._shared.program import as_typed

TOKEN_BYTES = 32
PARAMETER = "token"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, browsers would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Tokens:
    """Tokens of one run of the server.

    Attributes:
        token: the one in the URL.
        cookie: the value of the cookie.
        form: the one in forms.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.cookie = secrets.token_urlsafe(TOKEN_BYTES)
        self.form = secrets.token_urlsafe(TOKEN_BYTES)


def is_same(actual: str | None, expected: str) -> bool:
    """Compare secrets in a time that does not depend on their content."""
    return actual is not None and hmac.compare_digest(actual.encode(), expected.encode())


def is_own_form(request: Request, form: Mapping[str, str], tokens: Tokens) -> bool:
    """Return whether a form that changes something was sent from one of these pages."""
    origin = request.headers.get("origin")
    try:
        is_own = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False
    return is_own and is_same(form.get("form_token"), tokens.form)


class AccessMiddleware:
    """Middleware that admits requests with the token or the cookie, and adds headers.

    Args:
        app: the application to protect.
        tokens: the tokens of this run.
        port: part of the cookie's name: browsers send a cookie to all ports of a host.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, port: int) -> None:
        self._app = app
        self._tokens = tokens
        self._cookie = f"ehcp-ui-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer: ASGIApp = self._app
        if request.method == "GET" and is_same(
            request.query_params.get(PARAMETER), self._tokens.token
        ):
            answer = self._admitted(request.url.path, request.query_params)
        elif not is_same(request.cookies.get(self._cookie), self._tokens.cookie):
            answer = PlainTextResponse(
                f"Open the URL that {as_typed('ui')} printed when it started: it has the token of "
                "this page.\n",
                403,
            )
        await answer(scope, receive, send_with_headers)

    def _admitted(self, path: str, query: QueryParams) -> Response:
        """Set the cookie, and remove the token from the address bar."""
        rest = [(key, value) for key, value in query.multi_items() if key != PARAMETER]
        # A path such as `//host` would lead to another site.
        target = f"/{path.lstrip('/')}" + (f"?{urlencode(rest)}" if rest else "")
        answer = RedirectResponse(target, 303)
        answer.set_cookie(self._cookie, self._tokens.cookie, httponly=True, samesite="strict")
        return answer
