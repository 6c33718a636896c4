"""The settings are one file that a kubelet merges with the cluster's common configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from testinfra.host import Host

FILE = "/etc/kubernetes/kubelet.conf.d/90-gcluster.conf"


def test_the_settings_are_a_configuration_of_the_kubelet(host: Host) -> None:
    found = yaml.safe_load(host.file(FILE).content_string)
    assert (found["apiVersion"], found["kind"]) == (
        "kubelet.config.k8s.io/v1beta1",
        "KubeletConfiguration",
    )
    assert found["cpuManagerPolicy"] == "static"
    assert found["kubeReserved"] == {"cpu": "2", "memory": "3072Mi"}
    assert found["podPidsLimit"] == 32768  # noqa: PLR2004  # as in converge.yml
