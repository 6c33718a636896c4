"""A secret that Google's Secret Manager keeps."""

from __future__ import annotations

import base64
import re

from ..provider import provider_error
from .api import Answer, Api, Login

_NAME = re.compile(r"projects/([^/]+)/secrets/[^/]+(/versions/[^/]+)?")


class _Payload(Answer, frozen=True):
    data: str


class _Version(Answer, frozen=True):
    payload: _Payload


def read(place: str, login: Login | None = None) -> str:
    """Return the text of a secret, "projects/P/secrets/S"; the newest version where none is said.

    Raises:
        ProviderError: it can't be read, or is no text (GC917).
    """
    named = _NAME.fullmatch(place)
    if named is None:
        raise provider_error("GC917", "it is no projects/PROJECT/secrets/NAME of Secret Manager")
    path = f"{place}{'' if named[2] else '/versions/latest'}:access"
    version = Api(named[1], login=login).ask(_Version, path, service="secrets")
    try:
        return base64.b64decode(version.payload.data).decode()
    except UnicodeDecodeError:
        raise provider_error("GC917", "it is binary, and text is needed") from None
