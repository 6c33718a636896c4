"""Lists of hosts as GPU clouds hand them out become hosts, and a spec keeps them as its own."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.derived.loading.host_lists import read_file
from gcluster.schemas.load import load, load_text
from gcluster.schemas.spec.sites.bare_metal import ListedHost
from gcluster.schemas.spec.sites.host_line import read_line

SPEC = """\
apiVersion: gcluster/v1
name: research
sites:
  rented: {provider: ssh-fleet, ssh: {user: ubuntu}, hosts_file: hosts.txt}
pools:
  head: {site: rented, role: controller, hosts: head}
  gpu: {site: rented, machine: dgx-h100, hosts: "gpu[001-002]"}
scheduler: {type: slurm}
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("192.0.2.11", {"address": "192.0.2.11"}),
        ("192.0.2.11 ubuntu 2222", {"address": "192.0.2.11", "user": "ubuntu", "port": 2222}),
        ("ubuntu@gpu.example.com:2222 # two", {
            "address": "gpu.example.com", "user": "ubuntu", "port": 2222}),
        ("ssh ubuntu@192.0.2.11", {"address": "192.0.2.11", "user": "ubuntu"}),
        ("2001:db8::1 name=gpu001", {"address": "2001:db8::1", "name": "gpu001"}),
        ("[2001:db8::1]:2222", {"address": "2001:db8::1", "port": 2222}),
    ],
)  # fmt: skip
def test_a_line_gives_address_user_port_and_name(line: str, expected: dict[str, object]) -> None:
    assert read_line(line) == msgspec.convert(expected, ListedHost)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("name=gpu001", "no address"),
        ("192.0.2.11 ubuntu ssh", "is no port"),
        ("192.0.2.11:99999", '"99999" is no port'),
        ("a@192.0.2.11 b", "the user twice"),
        ("192.0.2.11:22 ubuntu 22", "the port twice"),
        ("192.0.2.11 ubuntu 22 more", "more words"),
        ("-oProxyCommand=evil", '"-oProxyCommand=evil" is no address'),
        ("192.0.2.11 -x", '"-x" is no user'),
    ],
)
def test_a_line_that_is_not_understood_reports_why(line: str, why: str) -> None:
    answer = read_line(line)
    assert isinstance(answer, str)
    assert why in answer


@pytest.mark.parametrize(
    "data",
    [
        ["192.0.2.11", "192.0.2.12"],
        [{"ip": "192.0.2.11"}, {"public_ip": "192.0.2.12", "jupyter_token": "secret"}],
        {"data": [{"ip": "192.0.2.11"}, {"ip": "192.0.2.12", "private_ip": "10.0.0.2"}]},
    ],
)
def test_the_json_of_an_api_is_a_list_of_hosts(data: object, tmp_path: Path) -> None:
    file = tmp_path / "hosts.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    read = read_file(file)
    assert read.diagnostics == ()
    assert [host.address for host in read.hosts] == ["192.0.2.11", "192.0.2.12"]
    assert "secret" not in repr(read)


def test_nodes_of_kubernetes_give_their_outer_address_and_name(tmp_path: Path) -> None:
    inner = {"type": "InternalIP", "address": "10.0.0.1"}
    outer = {"type": "ExternalIP", "address": "192.0.2.11"}
    nodes = [
        {"metadata": {"name": "gpu001"}, "status": {"addresses": [inner, outer]}},
        {"metadata": {"name": "gpu002"}, "status": {"addresses": [inner]}},
    ]
    (tmp_path / "nodes.json").write_text(json.dumps({"items": nodes}), encoding="utf-8")
    read = read_file(tmp_path / "nodes.json")
    assert [(h.name, h.address) for h in read.hosts] == [
        ("gpu001", "192.0.2.11"), ("gpu002", "10.0.0.1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content", ["", "# nothing yet\n", "[", "{}", '{"data": 3}', "[[]]", "[{}]"]
)
def test_a_file_without_hosts_is_reported_with_its_place(content: str, tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(content, encoding="utf-8")
    [found] = read_file(file).diagnostics
    assert (found.code, found.file) == ("GC027", str(file))
    assert found.span is not None


def test_the_text_that_is_kept_needs_no_file_and_has_the_same(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text(
        "192.0.2.10 name=head\n192.0.2.11 ops 2222\n192.0.2.12\n", encoding="utf-8"
    )
    spec = tmp_path / "cluster.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    loaded = load(spec)
    assert loaded.spec is not None, loaded.diagnostics
    (tmp_path / "hosts.txt").unlink()
    kept = load_text(loaded.whole_text, folder=tmp_path)
    assert "hosts_file" not in loaded.whole_text
    assert kept.spec is not None, kept.diagnostics
    one, other = loaded.spec.sites["rented"], kept.spec.sites["rented"]
    assert one == msgspec.structs.replace(other, hosts_file="hosts.txt")


def test_a_spec_without_a_list_is_kept_as_it_is(tmp_path: Path) -> None:
    text = SPEC.replace("hosts_file: hosts.txt", "hosts: [192.0.2.10, 192.0.2.11, 192.0.2.12]")
    assert load_text(text, folder=tmp_path).whole_text == text
