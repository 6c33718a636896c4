"""Opens URLs such that an HTTPS request stays on HTTPS through redirects."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPMessage, HTTPResponse
from typing import IO, Any


class _StaysEncrypted(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from HTTPS to anything else."""

    def redirect_request(  # noqa: PLR0917  # the library passes them by place
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the next request, or refuse it."""
        if req.type == "https" and urllib.parse.urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError(
                f"redirected from https to {newurl}, which was not requested"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def opened(requested: str | urllib.request.Request, *, timeout: float) -> HTTPResponse:
    """Open a URL like urllib, with the environment's proxies.

    Args:
        requested: a URL, or a request with headers of its own.
        timeout: longest time without data, in seconds.

    Raises:
        OSError: it is not available; `urllib.error.URLError` also where a redirect leaves HTTPS.
    """
    opener = urllib.request.build_opener(_StaysEncrypted)
    answer: Any = opener.open(requested, timeout=timeout)
    found: HTTPResponse = answer
    return found
