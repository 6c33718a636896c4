"""Logins, services and apt take the proxy, and nothing of it stays on a host that needs none."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host

PROXY = "http://192.0.2.3:3128"
SERVICE = "systemd-run --quiet --wait --pipe --collect env"


def test_logins_and_services_get_the_proxy_and_what_is_reached_without(host: Host) -> None:
    logins = host.file("/etc/environment").content_string
    services = host.check_output(SERVICE)
    for name in ("https_proxy", "HTTPS_PROXY"):
        assert f"{name}={PROXY}" in logins
        assert f"{name}={PROXY}" in services
    assert "no_proxy=localhost,127.0.0.1,::1,10.40.0.0/16,.example.edu" in logins


def test_apt_takes_it_but_for_the_hosts_that_are_near(host: Host) -> None:
    answer = host.check_output("apt-config dump Acquire")
    assert f'Acquire::https::Proxy "{PROXY}";' in answer
    assert 'Acquire::http::Proxy::127.0.0.1 "DIRECT";' in answer


def test_nothing_stays_where_the_spec_requests_no_proxy(host: Host, converge: Play) -> None:
    run = converge(phases=["remove"])
    assert run.returncode == 0, run.printed
    assert "proxy" not in host.file("/etc/environment").content_string
    assert "proxy" not in host.check_output(SERVICE)
    assert "192.0.2.3" not in host.check_output("apt-config dump Acquire")
    assert converge().returncode == 0
