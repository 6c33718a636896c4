"""What is fetched by HTTPS comes by HTTPS: no redirect leads out of it, in any download."""

from __future__ import annotations

import ssl
import subprocess
import threading
import urllib.error
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gcluster.lifecycle.bundle.fetch import RequiredFile, fetch_all
from gcluster.lifecycle.bundle.keys import exported
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.release.registry import fetched
from gcluster.lifecycle.kubernetes.release.release import _published_sum
from gcluster.stacks.azure.offers import _fetch
from gcluster.stacks.io.https import opened


class Site:
    """A server of HTTPS and one of HTTP: paths that begin with /to- send on."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Start both."""
        self.calls: list[str] = []
        outer = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name is the library's
                outer.calls.append(f"{self.server.server_port} {self.path}")  # type: ignore[attr-defined]
                to = {"/to-http": outer.http, "/to-https": outer.https}.get(self.path)
                self.send_response(302 if to else 200)
                if to:
                    self.send_header("Location", f"{to}/file")
                self.end_headers()
                self.wfile.write(b"" if to else b"0" * 64)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), Answers) for _ in range(2)]
        plain, encrypted = self.servers
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        encrypted.socket = context.wrap_socket(encrypted.socket, server_side=True)
        self.http = f"http://127.0.0.1:{plain.server_port}"
        self.https = f"https://127.0.0.1:{encrypted.server_port}"
        for server in self.servers:
            threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
            ).start()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Give servers whose certificate is trusted here."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "1", "-batch"]
    made += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    done = [*made, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(done, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    running = Site(certificate, key)
    yield running
    for server in running.servers:
        server.shutdown()
        server.server_close()


def bundled(url: str, folder: Path) -> None:
    file = RequiredFile(url=url, path="file", sha256="0" * 64, size=64, roles="a")
    _, findings = fetch_all([file], folder, lambda *_: None)
    raise LifecycleError(*findings)


def key_of(url: str, folder: Path) -> None:
    repository = {"name": "vendor", "key_url": url, "key_fingerprint": "0" * 40}
    exported(repository, folder)


PLACES: dict[str, Callable[[str, Path], object]] = {
    "files of a bundle": bundled,
    "key of a repository": key_of,
    "checksum of a release": lambda url, _: _published_sum(url),
    "charts and registries": lambda url, _: fetched(url),
    "prices": lambda url, _: _fetch(url),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_download_follows_a_redirect_out_of_https(
    place: str, site: Site, tmp_path: Path
) -> None:
    with pytest.raises((LifecycleError, urllib.error.URLError)):
        PLACES[place](f"{site.https}/to-http", tmp_path / "out")
    plain = site.http.rpartition(":")[2]
    assert site.calls
    assert not [answer for answer in site.calls if answer.startswith(f"{plain} ")]


@pytest.mark.parametrize(("first", "path"), [("https", "/to-https"), ("http", "/to-https")])
def test_a_redirect_to_https_is_followed(site: Site, first: str, path: str) -> None:
    with opened(f"{getattr(site, first)}{path}", timeout=10) as answer:
        assert answer.read() == b"0" * 64


def test_the_refusal_reports_where_it_led(site: Site) -> None:
    with pytest.raises(urllib.error.URLError, match=f"redirected from https to {site.http}/file"):
        opened(f"{site.https}/to-http", timeout=10)


def test_nothing_opens_a_url_by_itself(root: Path) -> None:
    folders = ("schemas", "inventory", "stacks", "lifecycle", "cli")
    own = [
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if any(
            word in path.read_text(encoding="utf-8")
            for word in ("urlopen(", "build_opener(", "urlretrieve(")
        )
    ]
    assert own == ["stacks/io/https.py"]
