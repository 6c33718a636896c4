"""What servers answer is not followed anywhere: odd challenges, other schemes, other hosts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.addons.artefact import published
from gcluster.lifecycle.kubernetes.release import registry
from gcluster.lifecycle.kubernetes.release.registry import fetched
from gcluster.schemas.catalog import Addon

ADDON = Addon(
    name="queue",
    description="queues",
    kind="helm",
    chart="queue",
    repository="https://charts.example.org",
    version="1.2.3",
    namespace="queue",
    source="here",
    date="2026-11",
)


class Site:
    """A server that answers 401 with a challenge, or sends on; it notes who showed a token."""

    def __init__(self) -> None:
        """Send no challenge yet."""
        self.challenge = ""
        self.tokens: dict[str, str | None] = {}
        self.url = ""


@pytest.fixture
def site() -> Iterator[Site]:
    answer = Site()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is the library's
            path, token = self.path.partition("?")[0], self.headers.get("Authorization")
            answer.tokens[path] = token
            if path == "/blob" and token is None:
                self.send_response(401)
                self.send_header("WWW-Authenticate", answer.challenge)
            elif path == "/blob":
                self.send_response(307)
                self.send_header("Location", f"{answer.url}/store")
            else:
                self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"token": "anybody"}' if path == "/token" else b"content")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    answer.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    yield answer
    server.shutdown()
    server.server_close()


def test_a_token_is_not_shown_where_a_registry_sends_on(site: Site) -> None:
    site.challenge = f'Bearer realm="{site.url}/token",service="here"'
    assert fetched(f"{site.url}/blob") == b"content"
    assert site.tokens == {"/blob": "Bearer anybody", "/token": None, "/store": None}


@pytest.mark.parametrize(
    ("challenge", "message"),
    [
        ('Basic realm="Harbor"', "Unauthorized"),
        ('Bearer realm="Harbor"', "no https URL"),
        ('Bearer realm="file:///etc/passwd"', "no https URL"),
        ('Bearer realm="http://192.0.2.1/token"', "no https URL"),
        ('Bearer realm="https://[x/"', "no https URL"),
        ('Bearer realm="https://x y/"', "was not fetched"),
    ],
)
def test_other_challenges_are_reported_and_not_followed(
    site: Site, challenge: str, message: str
) -> None:
    site.challenge = challenge
    with pytest.raises(LifecycleError, match=message) as refused:
        fetched(f"{site.url}/blob")
    assert [one.code for one in refused.value.diagnostics] == ["GC939"]
    assert site.tokens == {"/blob": None}


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://192.0.2.1/queue.tgz"])
def test_what_an_index_names_by_another_scheme_is_not_fetched(url: str) -> None:
    index = f"entries: {{queue: [{{version: 1.2.3, urls: ['{url}']}}]}}".encode()
    with pytest.raises(LifecycleError, match="no https URL"):
        published(
            ADDON,
            lambda requested: index if requested.endswith("index.yaml") else fetched(requested),
        )


@pytest.mark.parametrize(
    "index", ["entries: null", "entries: []", "entries: {queue: null}", "entries: {queue: [1]}"]
)
def test_an_index_of_another_form_has_no_such_chart(index: str) -> None:
    with pytest.raises(LifecycleError, match="has no chart queue"):
        published(ADDON, lambda _: index.encode())


def test_docker_hub_s_registry_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []

    def get(url: str, accept: tuple[str, ...]) -> tuple[bytes, str]:
        del accept
        requested.append(url)
        return b"{}", ""

    monkeypatch.setattr(registry, "_get", get)
    registry.digest_of("docker.io/library/busybox:1")
    assert requested == ["https://registry-1.docker.io/v2/library/busybox/manifests/1"]
