"""The package mirror serves its folder read-only to everyone, and runs without rights."""

from __future__ import annotations

import pytest
from conftest import Play
from testinfra.host import Host

ROOT = "/srv/gcluster/package-mirror"
URL = "http://127.0.0.1:8480"


def answer(host: Host, method: str, path: str) -> str:
    """Return status and body, with Python's own client on the node."""
    program = (
        "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8480);"
        f"c.request({method!r}, {path!r}); r = c.getresponse(); print(r.status, r.read().decode())"
    )
    return host.check_output("python3 -c %s", program)


def test_a_file_that_is_put_there_is_served_at_once(host: Host) -> None:
    host.check_output("cd /srv/gcluster/package-mirror && mkdir -p pool && echo new >pool/a.deb")
    assert answer(host, "GET", "/pool/a.deb") == "200 new"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/README", "403"),
        ("DELETE", "/README", "403"),
        ("GET", "/", "403"),
        ("GET", "/.incoming", "404"),
        ("GET", "/passwd", "403"),
        ("GET", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "400"),
    ],
    ids=["write", "delete", "list", "half-written", "link out of it", "path out of it"],
)
def test_nothing_but_finished_files_of_the_folder_can_be_had(
    host: Host, method: str, path: str, status: str
) -> None:
    host.check_output(f"cd {ROOT} && touch .incoming && ln -sfn /etc/passwd passwd")
    try:
        assert answer(host, method, path).split()[0] == status
    finally:
        host.check_output(f"rm -f {ROOT}/passwd {ROOT}/.incoming")


def test_it_runs_without_root_and_without_capabilities(host: Host) -> None:
    pid = host.check_output("systemctl show -P MainPID gcluster-package-mirror.service")
    status = host.check_output(f"cat /proc/{pid}/status")
    assert "CapEff:\t0000000000000000" in status
    assert "Uid:\t0" not in status


def test_the_package_s_own_server_neither_runs_nor_starts_with_the_machine(host: Host) -> None:
    assert not host.service("nginx").is_running
    assert not host.service("nginx").is_enabled


def test_a_port_that_is_taken_is_reported_and_the_next_run_fixes_it(
    host: Host, converge: Play
) -> None:
    host.check_output(
        "systemd-run --unit=squatter python3 -m http.server 8481 --directory /tmp && sleep 1"
    )
    try:
        run = converge(port=8481)
        assert run.returncode != 0
        assert "/srv/gcluster/package-mirror/README" in run.stdout
    finally:
        host.check_output("systemctl stop squatter.service")
    assert converge().returncode == 0
    assert answer(host, "GET", "/README").startswith("200")
