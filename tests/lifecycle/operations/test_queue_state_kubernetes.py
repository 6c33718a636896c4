"""Under Kubernetes there is no queue of Slurm's to save: the jobs are in etcd."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.lifecycle.controller import HEAD

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.operations.queue_state import restore_queue, save_queue
from gcluster.schemas.load import load_text

HOSTS = ClusterInventory(cluster="trial", hosts=(HEAD,))
KUBERNETES = """\
apiVersion: gcluster/v1
name: k
sites: {lab: {provider: local}}
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 1}
scheduler: {type: kubernetes}
"""


def test_kubernetes_has_no_queue_of_slurm_to_save_or_restore(tmp_path: Path) -> None:
    spec = load_text(KUBERNETES, file="k.yaml").spec
    session = SshSession(tmp_path)
    cluster: Any = SimpleNamespace(name="k", spec=spec)
    for ask in (
        lambda: save_queue(cluster, HOSTS, session),
        lambda: restore_queue(cluster, HOSTS, session, None),
    ):
        with pytest.raises(LifecycleError, match="keeps its jobs in etcd") as refused:
            ask()
        assert refused.value.diagnostics[0].code == "GC1031"
