"""Exports are limited to their clients; mounts wait for their server and change when unused."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Answered, Play
from testinfra.host import Host

SCRATCH: dict[str, Any] = {"path": "/scratch", "server": "127.0.0.1", "export": "/srv/scratch"}
SHARED = {"path": "/shared", "server": "127.0.0.1", "host": "node01", "export": "/srv/shared"}
DATA = {"path": "/data", "server": "127.0.0.1", "export": "/srv/data"}


def test_exports_of_this_host_are_served_and_those_of_another_are_not(host: Host) -> None:
    served = host.check_output("exportfs -s")
    assert "/srv/scratch  10.0.0.0/8(" in served
    assert "/srv/scratch  192.168.0.0/16(" in served
    assert "/srv/other" not in served
    scratch, shared = (
        next(line for line in served.splitlines() if line.startswith(path))
        for path in ("/srv/scratch", "/srv/shared")
    )
    assert ",rw," in scratch
    assert ",root_squash" in scratch
    assert ",ro," in shared
    assert ",no_root_squash" in shared


def test_a_mount_waits_for_its_server_and_is_there_before_jobs(host: Host) -> None:
    unit = host.file("/etc/systemd/system/scratch.mount").content_string
    assert "What=127.0.0.1:/srv/scratch" in unit
    for option in ("vers=4.2", "hard", "nconnect=8", "_netdev", "nosuid"):
        assert option in unit.split("Options=")[1].splitlines()[0].split(",")
    assert "Before=slurmd.service" in unit
    assert host.service("scratch.mount").is_running
    assert host.service("scratch.mount").is_enabled


def test_the_server_mounts_its_own_folder_through_a_bind_mount(host: Host) -> None:
    host.check_output("echo hello > /srv/shared/file")
    assert host.check_output("cat /shared/file") == "hello"


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("soft", "/scratch was requested with hard and is not so"),
        ("old-version", "/scratch was requested with vers=4.2 and is vers=4.0"),
        ("one-connection", "/scratch was requested with nconnect=8 and is not so"),
        ("read-only", "/scratch was requested with rw and is not so"),
        ("not-mounted", "/scratch is not mounted"),
    ],
)
def test_verify_fails_on_a_mount_that_is_not_as_wanted(
    answered: Answered, case: str, answer: str
) -> None:
    printed = answered(case)
    assert printed.rc != 0
    assert answer in printed.stdout + printed.stderr


def test_options_of_a_mount_in_use_are_not_changed(host: Host, converge: Play) -> None:
    host.check_output("systemd-run --unit=job sh -c 'cd /scratch && exec sleep infinity'")
    try:
        refused = converge(options=["actimeo=5"], phases=["join"])
        still = host.mount_point("/scratch").exists
    finally:
        host.check_output("systemctl stop job")
    assert refused.returncode != 0
    assert "/scratch has new options and is in use: drain the node" in refused.printed
    assert still
    assert converge(options=["actimeo=5"], phases=["join"]).returncode == 0
    unit = host.file("/etc/systemd/system/scratch.mount").content_string
    assert "actimeo=5" in unit
    assert converge().returncode == 0


def test_what_is_no_longer_requested_is_unmounted(host: Host, converge: Play) -> None:
    assert converge(mounts=[SCRATCH, SHARED, DATA], phases=["join"]).returncode == 0
    assert host.mount_point("/data").exists
    assert converge().returncode == 0
    assert not host.mount_point("/data").exists
    assert not host.file("/etc/systemd/system/data.mount").exists


def test_a_server_that_is_away_is_named_and_the_next_converge_mounts(
    host: Host, converge: Play
) -> None:
    host.check_output("systemctl stop nfs-server scratch.mount")
    run = converge(phases=["join"])
    assert run.returncode != 0
    assert "/scratch is not mounted: 127.0.0.1 doesn't answer on port 2049" in run.printed
    assert converge().returncode == 0


CERTIFICATE = """
set -e
cd /root
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout ca.key -out ca.crt
openssl req -newkey rsa:2048 -nodes -subj /CN=files.internal -keyout service.key -out service.csr
printf subjectAltName=DNS:files.internal > names
openssl x509 -req -in service.csr -CA ca.crt -CAkey ca.key -days 2 -extfile names -out service.crt
cat service.crt service.key > /etc/stunnel/service.pem
cp ca.crt /usr/local/share/ca-certificates/test.crt
update-ca-certificates
echo 127.0.0.2 files.internal other.internal >> /etc/hosts
printf '%s\n' 'foreground = yes' 'pid =' '[nfs]' 'accept = 127.0.0.2:2049' \\
    'connect = 127.0.0.1:2049' 'cert = /etc/stunnel/service.pem' > /etc/stunnel/service.conf
systemd-run --unit=service stunnel /etc/stunnel/service.conf
"""
"""A service that takes TLS alone, with a certificate of an authority that the node trusts."""


REQUEST = (
    'python3 -c "from urllib.request import urlopen as o;'
    "print(o('http://127.0.0.1:{}/', timeout=9).read().decode())"
    '"'
)
"""Reads a page of the double of the service's file server through a tunnel."""


def through_tls(name: str, server: str, port: int) -> dict[str, Any]:
    """Return a mount through a tunnel."""
    export = {"path": f"/{name}", "server": server, "export": "/srv/data"}
    return {**export, "tls": name, "tls_port": port}


def test_a_tunnel_carries_only_to_a_service_with_the_name_of_its_certificate(
    host: Host, converge: Play
) -> None:
    assert converge(tls=True, phases=["install"]).returncode == 0
    host.check_output(CERTIFICATE)
    mounts = [
        through_tls("data", "files.internal", 20061),
        through_tls("fake", "other.internal", 20062),
    ]
    assert converge(tls=True, mounts=mounts, phases=["join"]).returncode == 0
    assert "What=127.0.0.1:/srv/data" in host.file("/etc/systemd/system/data.mount").content_string

    assert "Directory listing" in host.check_output(REQUEST.format(20061))
    assert host.run(REQUEST.format(20062)).rc != 0
    logged = host.check_output("journalctl --unit gcluster-nfs-tls@fake --output=cat")
    assert "CERT: Subject checks failed" in logged

    host.check_output("kill -9 $(systemctl show --value --property=MainPID gcluster-nfs-tls@data)")
    host.check_output("sleep 3")
    assert "Directory listing" in host.check_output(REQUEST.format(20061))

    assert converge().returncode == 0
    assert not host.service("gcluster-nfs-tls@data").is_running
    assert not host.file("/etc/stunnel/gcluster-nfs-data.conf").exists
    host.check_output("systemctl stop service")
