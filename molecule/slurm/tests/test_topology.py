"""A real slurmctld reads each golden topology.conf and shows its content."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from testinfra.host import Host

testinfra_hosts = ["ansible://head01"]

CASES = yaml.safe_load((Path(__file__).parents[3] / "tests/cases/topology.yaml").read_text())
# In addition to the scenario's own controller: another port, another folder, unreachable nodes.
CONF = """\
ClusterName={case}
SlurmctldHost=head01(127.0.0.1)
SlurmctldPort=7817
SlurmUser=root
AuthType=auth/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdTimeout=0
SelectType=select/cons_tres
MpiDefault=none
{plugin}
NodeName=gpu[001-099] NodeAddr=198.51.100.[1-99] CPUs=8 State=DOWN
NodeName=spill[001-016] NodeAddr=198.51.100.[101-116] CPUs=8 State=DOWN
PartitionName=main Nodes={nodes} Default=YES
"""


def groups(text: str) -> dict[str, str]:
    """Return block or leaf switch -> its nodes."""
    return dict(re.findall(r"^(?:BlockName|SwitchName)=(\S+).* Nodes=(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("case", CASES)
def test_slurmctld_takes_the_layout(host: Host, case: str) -> None:
    text = CASES[case]["conf"]
    folder = f"/run/topology/{case}"
    wanted = groups(text)
    kind = {True: "block", False: "tree"}["BlockName" in text]
    conf = CONF.format(
        case=case,
        folder=folder,
        plugin=f"TopologyPlugin=topology/{kind}" if wanted else "",
        nodes=",".join(wanted.values()) or "gpu[001-099]",
    )
    host.check_output(f"rm -rf {folder} && mkdir -p {folder}/state")
    for name, content in {"slurm.conf": conf, "topology.conf": text}.items():
        host.check_output("printf %%s %s >%s", content, f"{folder}/{name}")
    unit = f"topology-{case}"
    run = f"slurmctld -D -i -f {folder}/slurm.conf"
    host.check_output(f"systemd-run --quiet --collect --unit={unit} {run}")
    try:
        ask = f"SLURM_CONF={folder}/slurm.conf scontrol"
        up = (
            f"until {ask} ping | grep -q 'is UP'; "
            f"do systemctl is-active -q {unit} || exit 1; sleep 0.2; done"
        )
        started = host.run(f'timeout 60 sh -c "{up}"')
        assert started.rc == 0, host.check_output(f"journalctl --unit {unit} --output cat")
        assert groups(host.run(f"{ask} show topology").stdout).items() >= wanted.items()
    finally:
        host.run(f"systemctl stop {unit}")
