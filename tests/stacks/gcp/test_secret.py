"""A secret of Google's Secret Manager is read by its name; the session is a double."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from gcluster.stacks.gcp.api import read_secret
from gcluster.stacks.provider import ProviderError


class Session:
    """Answers as the reference of `projects.secrets.versions.access` (v1) has it."""

    def __init__(self, data: bytes, status: int = 200) -> None:
        """Keep one secret."""
        self.calls: list[str] = []
        self._status = status
        answer = {"name": "n", "payload": {"data": base64.b64encode(data).decode()}}
        refusal = {"error": {"message": "Permission denied", "status": "PERMISSION_DENIED"}}
        self._content = json.dumps(answer if status == 200 else refusal).encode()

    def request(self, method: str, url: str, **_: object) -> Any:
        """Answer."""
        self.calls.append(f"{method} {url}")
        return SimpleNamespace(status_code=self._status, content=self._content)


def test_the_newest_version_is_read_where_none_is_named() -> None:
    session = Session(b"plover")
    assert read_secret("projects/p/secrets/ldap", session) == "plover"
    assert read_secret("projects/p/secrets/ldap/versions/3", session) == "plover"
    root = "GET https://secretmanager.googleapis.com/v1/projects/p/secrets/ldap/versions"
    assert session.calls == [f"{root}/latest:access", f"{root}/3:access"]


def test_what_is_refused_or_no_text_is_reported_without_it() -> None:
    with pytest.raises(ProviderError) as refused:
        read_secret("projects/p/secrets/ldap", Session(b"", status=403))
    assert [d.detail for d in refused.value.diagnostics] == ["PERMISSION_DENIED: Permission denied"]
    with pytest.raises(ProviderError, match="it is binary"):
        read_secret("projects/p/secrets/ldap", Session(b"\xff\xfe"))
