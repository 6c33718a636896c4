"""The modules for Prometheus' servers: addresses, logins, and what a running one lets through."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import running

from gcluster.lifecycle.secrets.certificates import certificate_of, issue, new_authority

pytestmark = pytest.mark.usefixtures("own_files")
LOGIN = "Basic Z2NsdXN0ZXI6cGxvdmVy"  # gcluster:plover


def address(name: str) -> dict[str, Any]:
    return running.run_module("listen_address", {"address": name, "service": "the exporter"})


def test_an_own_address_is_the_one_to_listen_on() -> None:
    assert address("127.0.0.1")["address"] == "127.0.0.1"


def test_an_ipv6_address_comes_in_brackets() -> None:
    assert address("::1")["address"] == "[::1]"


def test_an_address_of_another_machine_is_refused() -> None:
    answer = address("192.0.2.1")
    assert answer["failed"]
    assert "no interface of this node has 192.0.2.1" in answer["msg"]


def test_an_address_of_the_internet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.module("listen_address"), "is_own", lambda _: True)
    answer = address("8.8.8.8")
    assert answer["failed"]
    assert "8.8.8.8 is an address of the internet" in answer["msg"]


def test_a_name_without_an_address_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert "gpu001 has no address" in address("gpu001")["msg"]


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that writes the web configuration for a password."""

    def write(password: str, **more: Any) -> dict[str, Any]:
        check = more.pop("check", False)
        (tmp_path / "password").write_text(password)
        arguments = {
            "path": str(tmp_path / "web.yml"),
            "owner": "root",
            "certificate": "/etc/example/server.pem",
            "user": "gcluster",
            "password_file": str(tmp_path / "password"),
            **more,
        }
        return running.run_module("web_config", arguments, check=check)

    return write


def hash_in(folder: Path) -> str:
    return (folder / "web.yml").read_text().rsplit(None, 1)[1]


def test_the_file_holds_a_hash_that_fits_and_not_the_password(
    written: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    assert written("plover")["changed"]
    text, hashed = (tmp_path / "web.yml").read_text(), hash_in(tmp_path)
    assert "plover" not in text
    assert hashed.startswith("$2b$10$")
    assert running.module("web_config").crypt("plover", hashed) == hashed
    assert running.module("web_config").crypt("other", hashed) != hashed
    assert (tmp_path / "web.yml").stat().st_mode & 0o777 == 0o400


def test_a_hash_that_fits_stays_and_another_password_has_another(
    written: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    written("plover")
    before = hash_in(tmp_path)
    assert not written("plover")["changed"]
    assert written("other", check=True)["changed"]
    assert hash_in(tmp_path) == before
    assert written("other")["changed"]
    assert hash_in(tmp_path) != before


def test_a_file_that_a_program_refuses_is_not_put_in_place(
    written: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    written("plover")
    before = hash_in(tmp_path)
    answer = written("other", validate="sh -c 'echo no such key; exit 1' %s")
    assert answer["failed"]
    assert "would not be taken: no such key" in answer["msg"]
    assert hash_in(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["password", "web.yml"]


def test_an_empty_password_is_refused(written: Callable[..., dict[str, Any]]) -> None:
    assert "is empty" in written("")["msg"]


class Server(BaseHTTPRequestHandler):
    """Answers as Prometheus does: 401 without the login."""

    lax = False

    def do_GET(self) -> None:  # http.server's name
        is_known = self.lax or self.headers.get("Authorization") == LOGIN
        self.send_response(200 if is_known else 401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # likewise
        """Say nothing."""


@pytest.fixture
def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., dict[str, Any]]]:
    """Return a function that checks a server on this machine."""
    authority = new_authority("demo")
    (tmp_path / "ca.pem").write_bytes(certificate_of(authority))
    (tmp_path / "other.pem").write_bytes(certificate_of(new_authority("other")))
    (tmp_path / "server.pem").write_bytes(issue(authority, ["prometheus"], ["server"]))
    (tmp_path / "password").write_text("plover")
    handler = type("Handler", (Server,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca.pem")
    context.load_cert_chain(tmp_path / "server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    port = server.server_address[1]
    (tmp_path / "args").write_text(f'ARGS="--web.listen-address=127.0.0.1:{port}"\n')
    checked = running.module("web_endpoint_check")
    state = {"active": True, "listens": f"LISTEN 0 4096 127.0.0.1:{port} 0.0.0.0:*"}
    monkeypatch.setattr(checked, "is_active", lambda _: state["active"])
    monkeypatch.setattr(checked, "run", lambda *_: (0, state["listens"]))

    def check(ca: str = "ca", *, login: bool = True, **more: Any) -> dict[str, Any]:
        handler.lax = more.pop("lax", False)
        context.verify_mode = ssl.CERT_REQUIRED if more.pop("strict", False) else ssl.CERT_NONE
        state.update(more)
        arguments = {
            "unit": "prometheus",
            "settings": str(tmp_path / "args"),
            "ca": str(tmp_path / f"{ca}.pem"),
            "server_name": "prometheus",
            "page": "/-/ready",
        }
        known = {"user": "gcluster", "password_file": str(tmp_path / "password")}
        return running.run_module("web_endpoint_check", arguments | (known if login else {}))

    yield check
    server.shutdown()
    server.server_close()


def test_a_server_that_requests_a_login_passes(served: Callable[..., dict[str, Any]]) -> None:
    assert not served().get("failed")


def test_a_server_that_answers_all_users_fails(served: Callable[..., dict[str, Any]]) -> None:
    assert served(lax=True)["msg"] == "prometheus answers 200 without a password, not 401"


def test_another_password_fails(served: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "password").write_text("other")
    assert served()["msg"] == "prometheus answers 401 to gcluster, not 200"


def test_a_certificate_of_another_authority_fails(served: Callable[..., dict[str, Any]]) -> None:
    assert "its certificate is not trusted" in served("other")["msg"]


def test_a_server_that_takes_certificates_alone_passes_when_it_refuses_strangers(
    served: Callable[..., dict[str, Any]],
) -> None:
    assert not served(login=False, strict=True).get("failed")
    answer = served(login=False, lax=True)
    assert answer["msg"] == "prometheus answers a client without a certificate (200)"


def test_a_stopped_unit_and_an_open_address_are_reported(
    served: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    assert served(active=False)["msg"] == "prometheus does not run"
    answer = served(active=True, listens="LISTEN 0 4096 *:9090 *:*")
    assert "is open on * too, not on 127.0.0.1 alone" in answer["msg"]
    (tmp_path / "args").write_text("")
    assert "says no --web.listen-address" in served()["msg"]
