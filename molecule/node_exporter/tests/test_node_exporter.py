"""The running exporter accepts the monitoring host's certificate and no other."""

from __future__ import annotations

import pytest
from conftest import Play
from exporter_client import ExporterClient
from testinfra.host import Host

SETTINGS = "/etc/gcluster/node_exporter"
PORT = 9100


@pytest.fixture(scope="module")
def client(host: Host) -> ExporterClient:
    return ExporterClient(host, PORT)


def test_the_exporter_runs_now_and_after_a_reboot(host: Host) -> None:
    service = host.service("prometheus-node-exporter")
    assert service.is_running
    assert service.is_enabled


def test_the_monitoring_host_gets_the_metrics_of_the_node(client: ExporterClient) -> None:
    code, text = client.get("server")
    assert code == 0, text
    for metric in (
        "node_filesystem_avail_bytes",
        "node_timex_sync_status",
        'node_systemd_unit_state{name="ssh.service",state="active",type="notify"} 1',
        "node_textfile_scrape_error 0",
    ):
        assert metric in text


@pytest.mark.parametrize("certificate", ["", "other-server", "exporter"])
def test_clients_without_the_monitoring_host_s_certificate_are_refused(
    client: ExporterClient, certificate: str
) -> None:
    code, text = client.get(certificate)
    assert code or text.strip() == "", text
    assert "node_" not in text


def test_a_client_of_another_authority_rejects_the_exporter(client: ExporterClient) -> None:
    code, text = client.get("server", ca="other-authority")
    assert code
    assert "CERTIFICATE_VERIFY_FAILED" in text


def test_it_listens_on_the_cluster_s_address_alone(host: Host, client: ExporterClient) -> None:
    listening = host.check_output(f"ss -Hltn 'sport = :{PORT}'")
    assert {line.split()[3] for line in listening.splitlines()} == {f"{client.address}:{PORT}"}


def test_its_key_is_readable_by_its_user_alone_and_in_no_log(host: Host) -> None:
    key = host.file(f"{SETTINGS}/server.pem")
    assert (key.user, key.mode) == ("prometheus", 0o400)
    assert "PRIVATE KEY" not in host.check_output("journalctl --no-pager --output cat")


def test_a_text_file_of_metrics_is_served(host: Host, client: ExporterClient) -> None:
    file = "/var/lib/prometheus/node-exporter/molecule.prom"
    host.check_output(f"echo 'molecule_figure 42' > {file}")
    try:
        assert "molecule_figure 42" in client.get("server").text
    finally:
        host.check_output(f"rm {file}")


def test_an_address_of_another_machine_is_refused_with_a_hint(converge: Play) -> None:
    run = converge(phases=["configure"], node_exporter_address="192.0.2.1")
    assert run.returncode
    assert "no interface of this node has 192.0.2.1" in run.printed
    assert "give the host an address of the cluster's network" in run.printed


def test_remove_deletes_the_settings_and_stops_the_service(host: Host, converge: Play) -> None:
    try:
        assert converge(phases=["remove"]).returncode == 0
        assert not host.file(SETTINGS).exists
        assert not host.service("prometheus-node-exporter").is_running
    finally:
        again = converge()
    assert again.returncode == 0, again.printed
