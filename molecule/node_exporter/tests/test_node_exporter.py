"""The running exporter answers the monitoring host, and nobody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Play
from testinfra.host import Host

SETTINGS = "/etc/gcluster/node_exporter"
ASK = """
import socket, ssl, sys
address, ca, certificate = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
if certificate:
    context.load_cert_chain(certificate)
try:
    with socket.create_connection((address, 9100), 10) as plain:
        with context.wrap_socket(plain, server_hostname="node-exporter") as asked:
            asked.sendall(b"GET /metrics HTTP/1.0\\r\\nHost: node-exporter\\r\\n\\r\\n")
            print(b"".join(iter(lambda: asked.recv(65536), b"")).decode())
except OSError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.fixture(scope="module")
def keys(host: Host) -> str:
    """Return a folder on the node with certificates that only the monitoring host would have."""
    source = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])
    host.check_output("mkdir -p /root/keys")
    for name in ("authority", "other-authority", "exporter", "server", "other-server"):
        text = (source / f"{name}.pem").read_text()
        host.check_output(f"cat > /root/keys/{name}.pem <<'END'\n{text}END")
    host.check_output(f"cat > /root/keys/ask.py <<'END'\n{ASK}END")
    return "/root/keys"


def address(host: Host) -> str:
    return host.check_output("hostname -I").split()[0]


def asked(host: Host, keys: str, certificate: str, ca: str = "authority") -> tuple[int, str]:
    file = f"{keys}/{certificate}.pem" if certificate else "''"
    run = host.run(f"python3 {keys}/ask.py {address(host)} {keys}/{ca}.pem {file}")
    return run.rc, run.stdout + run.stderr


def test_the_exporter_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("prometheus-node-exporter")
    assert service.is_running
    assert service.is_enabled


def test_the_monitoring_host_is_told_of_the_node(host: Host, keys: str) -> None:
    code, said = asked(host, keys, "server")
    assert code == 0, said
    for metric in (
        "node_filesystem_avail_bytes",
        "node_timex_sync_status",
        'node_systemd_unit_state{name="ssh.service",state="active",type="notify"} 1',
        "node_textfile_scrape_error 0",
    ):
        assert metric in said


@pytest.mark.parametrize("certificate", ["", "other-server", "exporter"])
def test_strangers_are_refused_and_so_is_another_node(
    host: Host, keys: str, certificate: str
) -> None:
    code, said = asked(host, keys, certificate)
    assert code or said.strip() == "", said
    assert "node_" not in said


def test_a_client_that_trusts_another_authority_does_not_take_the_exporter_for_ours(
    host: Host, keys: str
) -> None:
    code, said = asked(host, keys, "server", ca="other-authority")
    assert code
    assert "CERTIFICATE_VERIFY_FAILED" in said


def test_it_listens_on_the_cluster_s_address_alone(host: Host) -> None:
    listening = host.check_output("ss -Hltn 'sport = :9100'")
    assert {line.split()[3] for line in listening.splitlines()} == {f"{address(host)}:9100"}


def test_its_key_is_one_user_s_and_in_no_log(host: Host) -> None:
    key = host.file(f"{SETTINGS}/server.pem")
    assert (key.user, key.mode) == ("prometheus", 0o400)
    assert "PRIVATE KEY" not in host.check_output("journalctl --no-pager --output cat")


def test_a_figure_that_a_program_leaves_is_served(host: Host, keys: str) -> None:
    file = "/var/lib/prometheus/node-exporter/molecule.prom"
    host.check_output(f"echo 'molecule_figure 42' > {file}")
    try:
        assert "molecule_figure 42" in asked(host, keys, "server")[1]
    finally:
        host.check_output(f"rm {file}")


def test_an_address_that_is_another_machine_s_is_refused_with_what_to_do(converge: Play) -> None:
    run = converge(phases=["configure"], node_exporter_address="192.0.2.1")
    assert run.returncode
    assert "no interface of this node has 192.0.2.1" in run.said
    assert "give the host an address of the cluster's network" in run.said


def test_what_the_role_leaves_is_gone_when_the_spec_drops_it(host: Host, converge: Play) -> None:
    try:
        assert converge(phases=["remove"]).returncode == 0
        assert not host.file(SETTINGS).exists
        assert not host.service("prometheus-node-exporter").is_running
    finally:
        again = converge()
    assert again.returncode == 0, again.said
