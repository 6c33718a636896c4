"""The double of DCGM exporter on a node: published names, real work, and no stranger's business."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from testinfra.host import Host

XID = 79
ASK = """
import socket, ssl, sys
address, certificate = sys.argv[1:]
context = ssl.create_default_context(cafile="/root/keys/authority.pem")
if certificate:
    context.load_cert_chain(certificate)
try:
    with socket.create_connection((address, 9400), 10) as plain:
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
    for name in ("authority", "exporter", "server", "other-server"):
        text = (source / f"{name}.pem").read_text()
        host.check_output(f"cat > /root/keys/{name}.pem <<'END'\n{text}END")
    host.check_output(f"cat > /root/keys/ask.py <<'END'\n{ASK}END")
    return "/root/keys"


def asked(host: Host, certificate: str) -> tuple[int, str]:
    address = host.check_output("hostname -I").split()[0]
    run = host.run(f"python3 /root/keys/ask.py {address} {certificate or repr('')}")
    return run.rc, run.stdout + run.stderr


def value(page: str, metric: str, gpu: int) -> float:
    found = re.search(rf'^{metric}{{gpu="{gpu}",[^}}]*}} (\S+)$', page, re.MULTILINE)
    assert found is not None, f"{metric} of GPU {gpu}"
    return float(found[1])


def test_it_runs_now_and_after_a_reboot_and_listens_on_one_address(host: Host) -> None:
    service = host.service("gcluster-dcgm-double")
    assert service.is_running
    assert service.is_enabled
    address = host.check_output("hostname -I").split()[0]
    listening = [line.split()[3] for line in host.check_output("ss -Hltn").splitlines()]
    assert [one for one in listening if one.endswith(":9400")] == [f"{address}:9400"]


def test_a_gpu_is_as_busy_as_the_processes_of_its_job_and_says_it_is_no_gpu(
    host: Host, keys: str
) -> None:
    code, page = asked(host, f"{keys}/server.pem")
    assert code == 0, page
    assert value(page, "DCGM_FI_PROF_SM_ACTIVE", 2) > 0
    assert value(page, "DCGM_FI_PROF_SM_ACTIVE", 0) == 0
    assert value(page, "DCGM_FI_DEV_FB_USED", 3) > 0
    assert value(page, "DCGM_FI_DEV_FB_USED", 0) == 0
    assert value(page, "DCGM_FI_DEV_XID_ERRORS", 7) == 0
    assert "gcluster_dcgm_double 1" in page
    assert 'modelName="simulated H100"' in page


def test_who_is_not_the_monitoring_host_is_refused(host: Host, keys: str) -> None:
    for certificate in ("", f"{keys}/other-server.pem", f"{keys}/exporter.pem"):
        code, said = asked(host, certificate)
        assert (code, "DCGM_" in said) == (1, False), certificate


def test_a_fault_is_served_as_long_as_it_is_there(host: Host, keys: str) -> None:
    file = "/run/gcluster/dcgm-double.json"
    fault = json.dumps({3: {"DCGM_FI_DEV_XID_ERRORS": XID}})
    host.check_output(f"mkdir -p /run/gcluster && echo '{fault}' > {file}")
    assert value(asked(host, f"{keys}/server.pem")[1], "DCGM_FI_DEV_XID_ERRORS", 3) == XID
    host.check_output(f"rm {file}")
    assert value(asked(host, f"{keys}/server.pem")[1], "DCGM_FI_DEV_XID_ERRORS", 3) == 0


def test_a_gpu_has_the_job_that_its_file_names(host: Host, keys: str) -> None:
    folder = "/run/gcluster/gpu-jobs"
    host.check_output(f"mkdir -p {folder} && echo 7 > {folder}/2")
    page = asked(host, f"{keys}/server.pem")[1]
    host.check_output(f"rm -r {folder}")

    named = re.findall(
        r'^DCGM_FI_PROF_SM_ACTIVE\{gpu="(\d)",[^}]*hpc_job="7"\}', page, re.MULTILINE
    )
    assert named == ["2"]
