"""The double of DCGM exporter on a node: published names, real load, TLS clients only."""

from __future__ import annotations

import json
import re

import pytest
from exporter_client import ExporterClient
from testinfra.host import Host

PORT = 9400
XID = 79


@pytest.fixture(scope="module")
def client(host: Host) -> ExporterClient:
    return ExporterClient(host, PORT)


def value(page: str, metric: str, gpu: int) -> float:
    found = re.search(rf'^{metric}{{gpu="{gpu}",[^}}]*}} (\S+)$', page, re.MULTILINE)
    assert found is not None, f"{metric} of GPU {gpu}"
    return float(found[1])


def test_it_runs_now_and_after_a_reboot_and_listens_on_one_address(
    host: Host, client: ExporterClient
) -> None:
    service = host.service("gcluster-dcgm-double")
    assert service.is_running
    assert service.is_enabled
    listening = [line.split()[3] for line in host.check_output("ss -Hltn").splitlines()]
    assert [one for one in listening if one.endswith(f":{PORT}")] == [f"{client.address}:{PORT}"]


def test_a_simulated_gpu_is_as_busy_as_its_job_and_marked_as_simulated(
    client: ExporterClient,
) -> None:
    code, page = client.get("server")
    assert code == 0, page
    assert value(page, "DCGM_FI_PROF_SM_ACTIVE", 2) > 0
    assert value(page, "DCGM_FI_PROF_SM_ACTIVE", 0) == 0
    assert value(page, "DCGM_FI_DEV_FB_USED", 3) > 0
    assert value(page, "DCGM_FI_DEV_FB_USED", 0) == 0
    assert value(page, "DCGM_FI_DEV_XID_ERRORS", 7) == 0
    assert "gcluster_dcgm_double 1" in page
    assert 'modelName="simulated H100"' in page


@pytest.mark.parametrize("certificate", ["", "other-server", "exporter"])
def test_clients_without_the_monitoring_host_s_certificate_are_refused(
    client: ExporterClient, certificate: str
) -> None:
    code, text = client.get(certificate)
    assert (code, "DCGM_" in text) == (1, False)


def test_a_simulated_fault_is_served_until_it_is_removed(
    host: Host, client: ExporterClient
) -> None:
    file = "/run/gcluster/dcgm-double.json"
    fault = json.dumps({3: {"DCGM_FI_DEV_XID_ERRORS": XID}})
    host.check_output(f"mkdir -p /run/gcluster && echo '{fault}' > {file}")
    assert value(client.get("server").text, "DCGM_FI_DEV_XID_ERRORS", 3) == XID
    host.check_output(f"rm {file}")
    assert value(client.get("server").text, "DCGM_FI_DEV_XID_ERRORS", 3) == 0


def test_a_gpu_has_the_job_that_its_file_names(host: Host, client: ExporterClient) -> None:
    folder = "/run/gcluster/gpu-jobs"
    host.check_output(f"mkdir -p {folder} && echo 7 > {folder}/2")
    page = client.get("server").text
    host.check_output(f"rm -r {folder}")

    named = re.findall(
        r'^DCGM_FI_PROF_SM_ACTIVE\{gpu="(\d)",[^}]*hpc_job="7"\}', page, re.MULTILINE
    )
    assert named == ["2"]
