"""Certificates of monitoring in real TLS handshakes: who takes whom for what."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from gcluster.lifecycle.secrets.certificates import certificate_of, issue, new_authority
from gcluster.lifecycle.secrets.makers import (
    ISSUED,
    issue_by_newest_authority,
    make_secrets,
    trust_another_authority,
    trust_newest_authority_alone,
)
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.load import load_text

_EXPORTER, _SERVER = ISSUED["monitoring-exporter"], ISSUED["monitoring-server"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two authorities and what each has issued."""
    for cluster in ("ours", "other"):
        authority = new_authority(cluster)
        (tmp_path / f"{cluster}.pem").write_bytes(certificate_of(authority))
        for name, issued in (("exporter", _EXPORTER), ("server", _SERVER)):
            (tmp_path / f"{cluster}-{name}.pem").write_bytes(issue(authority, *issued))
    return tmp_path


def handshake(
    folder: Path, server: str, client: str | None, *, trusts: str = "ours", name: str
) -> str:
    """Return what a client reads from a server that requests a certificate; "" where refused."""
    asks = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ours.pem")
    asks.verify_mode = ssl.CERT_REQUIRED if client is not None else ssl.CERT_NONE
    asks.load_cert_chain(folder / f"{server}.pem")
    comes = ssl.create_default_context(cafile=folder / f"{trusts}.pem")
    if client:
        comes.load_cert_chain(folder / f"{client}.pem")
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            with asks.wrap_socket(theirs, server_side=True) as answering:
                answering.sendall(b"metrics")
        except OSError:
            theirs.close()

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        with comes.wrap_socket(ours, server_hostname=name) as asking:
            return asking.recv(64).decode()
    except OSError:
        return ""
    finally:
        ours.close()
        serving.join()


def test_the_monitoring_host_is_answered_by_an_exporter(folder: Path) -> None:
    answer = handshake(folder, "ours-exporter", "ours-server", name="node-exporter")
    assert answer == "metrics"


@pytest.mark.parametrize("client", ["", "other-server", "ours-exporter"])
def test_an_exporter_refuses_strangers_another_cluster_and_its_own_kind(
    folder: Path, client: str
) -> None:
    assert handshake(folder, "ours-exporter", client, name="node-exporter") == ""


def test_a_node_can_not_impersonate_the_monitoring_host(folder: Path) -> None:
    assert handshake(folder, "ours-server", None, name="prometheus") == "metrics"
    assert handshake(folder, "ours-exporter", None, name="prometheus") == ""


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_the_servers_are_reached_through_a_forwarded_port(folder: Path, name: str) -> None:
    assert handshake(folder, "ours-server", None, name=name) == "metrics"


def test_another_cluster_s_authority_vouches_for_nothing_here(folder: Path) -> None:
    answer = handshake(folder, "ours-server", None, trusts="other", name="prometheus")
    assert answer == ""


def test_what_nodes_get_of_the_authority_holds_no_key(folder: Path) -> None:
    assert "PRIVATE" not in (folder / "ours.pem").read_text()
    assert "PRIVATE" in (folder / "ours-server.pem").read_text()


def test_certificates_of_before_and_after_take_each_other_until_the_old_authority_is_dropped(
    tmp_path: Path,
) -> None:
    spec = load_text(
        "apiVersion: gcluster/v1\nname: demo\nsites: {here: {provider: local}}\n"
        "pools:\n  head: {site: here, role: controller}\n"
        "  gpu: {site: here, machine: sim.h100x8, count: 1}\nscheduler: {type: slurm}\n"
    ).spec
    assert spec is not None
    store = StateStore.open(f"file://{tmp_path}/state")
    vault = SecretVault.open(store, None, "id", tmp_path / "keys")
    names = ("monitoring-authority", "monitoring-exporter", "monitoring-server")
    make_secrets(vault, spec, (*names, "monitoring-password"))

    def write(which: str) -> None:
        (tmp_path / "ours.pem").write_bytes(vault.reveal("monitoring-authority"))
        for kind in ("exporter", "server"):
            (tmp_path / f"{which}-{kind}.pem").write_bytes(vault.reveal(f"monitoring-{kind}"))

    def answered(exporter: str, server: str) -> bool:
        answer = handshake(
            tmp_path, f"{exporter}-exporter", f"{server}-server", name="node-exporter"
        )
        return answer == "metrics"

    write("old")
    password = vault.reveal("monitoring-password")
    trust_another_authority(vault, "demo")
    write("old")
    assert answered("old", "old")
    issue_by_newest_authority(vault)
    write("new")
    assert all(answered(a, b) for a in ("old", "new") for b in ("old", "new"))
    assert vault.reveal("monitoring-password") != password
    trust_newest_authority_alone(vault)
    write("new")
    assert answered("new", "new")
    assert not answered("new", "old")
    assert not answered("old", "new")
