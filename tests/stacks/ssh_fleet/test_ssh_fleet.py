"""A fleet hands over the hosts of its list, makes nothing, and knocks before anything is done."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.schemas.cost.pools import pool_cost
from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.provider import ProviderError, SiteContext
from gcluster.stacks.registry import provider
from gcluster.stacks.ssh_fleet.reach import Endpoint, endpoints, unanswered

from ..ledger_double import RecordingLedger  # as pytest imports test folders

SPEC = """\
apiVersion: gcluster/v1
name: research
sites:
  rented:
    provider: ssh-fleet
    ssh: {{user: ubuntu, key: ~/.ssh/lambda, bastion: "{bastion}"}}
    hosts: [{hosts}]
    usd_per_hour: {{dgx-h100: 21.5}}
pools:
  head: {{site: rented, role: controller, hosts: head}}
  gpu: {{site: rented, machine: dgx-h100, hosts: ["gpu[001-002]"]}}
scheduler: {{type: slurm}}
"""
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIzN7vVm0Xq3z6n0qCzM1Y5nWqjXn0a5uHfJm3d8o1aB"


def spec_of(*hosts: str, bastion: str = "") -> ClusterSpec:
    text = SPEC.format(hosts=", ".join(hosts), bastion=bastion)
    loaded = load_text(text if bastion else text.replace(', bastion: ""', ""))
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def context_of(spec: ClusterSpec, folder: Path) -> SiteContext:
    return SiteContext(
        spec=spec, site="rented", cluster_id="c", workdir=folder, cache=folder,
        ledger=RecordingLedger(), emit=lambda _: None,
    )  # fmt: skip


@contextmanager
def greeting(words: bytes) -> Iterator[int]:
    """Listen on a port of this machine and say some words to everyone who comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(words)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_host_takes_the_entry_of_its_name_and_the_others_come_in_order() -> None:
    spec = spec_of("192.0.2.11", "192.0.2.10 name=head", "192.0.2.12 ops 2222")
    hosts = provider("ssh-fleet").planned_hosts(spec, "rented")
    assert [(h.name, h.address, h.ssh.user, h.ssh.port) for h in hosts] == [
        ("head", "192.0.2.10", "ubuntu", 22),
        ("gpu001", "192.0.2.11", "ubuntu", 22),
        ("gpu002", "192.0.2.12", "ops", 2222),
    ]
    assert {h.ssh.key_file for h in hosts} == {"~/.ssh/lambda"}


def test_a_key_of_the_list_is_pinned_and_no_other_host_gets_it() -> None:
    entry = f'{{address: 192.0.2.11, host_key: "{KEY}"}}'
    hosts = provider("ssh-fleet").planned_hosts(
        spec_of("192.0.2.10", entry, "192.0.2.12"), "rented"
    )
    assert [h.ssh.host_keys for h in hosts] == [(), (KEY,), ()]


def test_a_pool_s_settings_of_a_host_override_the_list() -> None:
    text = SPEC.format(hosts="192.0.2.10, 192.0.2.11 ops 2222", bastion="jump").replace(
        '["gpu[001-002]"]', "[{name: gpu001, user: root}, {name: gpu002, address: 192.0.2.9}]"
    )
    loaded = load_text(text)
    assert loaded.spec is not None, loaded.diagnostics
    hosts = provider("ssh-fleet").planned_hosts(loaded.spec, "rented")
    assert [(h.address, h.ssh.user, h.ssh.port) for h in hosts[1:]] == [
        ("192.0.2.11", "root", 2222), ("192.0.2.9", "ubuntu", 22),
    ]  # fmt: skip


def test_machines_can_be_neither_made_nor_given_back(tmp_path: Path) -> None:
    context = context_of(spec_of("192.0.2.10", "192.0.2.11", "192.0.2.12"), tmp_path)
    with pytest.raises(ProviderError, match="can't be made"):
        provider("ssh-fleet").grow(context, "gpu", ["gpu003"], "t")
    assert provider("ssh-fleet").sweep(context) == ()


def test_only_doors_without_a_greeting_are_reported() -> None:
    with greeting(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        spec = spec_of(f"127.0.0.1:{port}", "127.0.0.1:1", "127.0.0.1:2")
        wanted = endpoints(provider("ssh-fleet").planned_hosts(spec, "rented"))
        silent = unanswered(wanted, timeout_s=2)
    assert [endpoint.port for endpoint in silent] == [1, 2]
    assert set(silent.values()) == {"connection refused"}


def test_some_silent_hosts_are_a_warning_and_all_silent_ones_an_error(tmp_path: Path) -> None:
    fleet = provider("ssh-fleet")
    with greeting(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        spec = spec_of(f"127.0.0.1:{port}", "127.0.0.1:1", "127.0.0.1:2")
        [some] = fleet.preflight(context_of(spec, tmp_path))
    spec = spec_of("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
    [none] = fleet.preflight(context_of(spec, tmp_path))
    assert (some.code, some.severity) == ("GC927", Severity.WARNING)
    assert "2 of 3 hosts" in some.summary
    assert "gpu002" in some.detail
    assert none.severity is Severity.ERROR


def test_a_server_that_is_no_ssh_server_itself_is_no_ssh_server() -> None:
    with greeting(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        silent = unanswered([Endpoint("127.0.0.1", port)], timeout_s=2)
    assert list(silent.values()) == ["something answers there that is no SSH server"]


def test_of_hosts_behind_a_bastion_the_bastion_is_queried_once(tmp_path: Path) -> None:
    with greeting(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        bastion = f"ops@127.0.0.1:{port}"
        spec = spec_of("192.0.2.10", "192.0.2.11", "192.0.2.12", bastion=bastion)
        hosts = provider("ssh-fleet").planned_hosts(spec, "rented")
        assert endpoints(hosts) == {Endpoint("127.0.0.1", port): ["head", "gpu001", "gpu002"]}
        assert provider("ssh-fleet").preflight(context_of(spec, tmp_path)) == ()


@pytest.mark.parametrize(
    ("bastion", "endpoint"),
    [
        ("jump", Endpoint("jump", 22)),
        ("ops@jump:2222", Endpoint("jump", 2222)),
        ("ops@[2001:db8::1]:2222", Endpoint("2001:db8::1", 2222)),
        ("2001:db8::1", Endpoint("2001:db8::1", 22)),
    ],
)
def test_a_bastion_is_read_as_ssh_reads_it(bastion: str, endpoint: Endpoint) -> None:
    host = Host(
        name="h", site="s", pool="p", role="compute", machine=None, address="a",
        ssh=SshTarget(user="u", bastion=bastion),
    )  # fmt: skip
    assert list(endpoints([host])) == [endpoint]


def test_the_users_own_price_goes_before_the_catalogs() -> None:
    from gcluster.schemas.catalog import load_catalog  # noqa: PLC0415  # one test reads it

    spec = spec_of("192.0.2.10", "192.0.2.11", "192.0.2.12")
    cost = pool_cost(spec.pools["gpu"], spec.sites["rented"], load_catalog())
    assert cost.usd_per_hour == 2 * 21.5
    other = msgspec.structs.replace(spec.sites["rented"], usd_per_hour={})
    listed = load_catalog().machines["dgx-h100"].price()
    expected = None if listed is None else 2 * listed.usd_per_hour
    assert pool_cost(spec.pools["gpu"], other, load_catalog()).usd_per_hour == expected
