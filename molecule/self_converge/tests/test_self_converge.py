"""A node runs a step of a signed bundle, reports it, and refuses invalid bundles."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from gcluster.inventory.compile import CompiledCluster, Group
from gcluster.inventory.compile.steps import Stage, Step
from gcluster.lifecycle.operations.gitops.pull.bundle import manifest, pool_bundles, runtime, signed

PACKAGE_MIRROR = "/srv/gcluster/package-mirror/converge"
FITS_A_COMMAND_LINE = 120_000
FOLDER = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])


def put(host: Host, name: str, content: bytes) -> None:
    """Put a file into the package mirror: on a command line where it fits one."""
    text = base64.b64encode(content).decode()
    if len(text) < FITS_A_COMMAND_LINE:
        host.check_output("printf %%s %s | base64 -d > %s/%s", text, PACKAGE_MIRROR, name)
        return
    (FOLDER / name).write_bytes(content)
    copy = f"src={FOLDER / name} dest={PACKAGE_MIRROR}/{name} mode=0644"
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    words = ["ansible", "--inventory", inventory, "all", "-m", "ansible.builtin.copy", "-a", copy]
    subprocess.run(words, check=True, capture_output=True)


def publish(host: Host, serial: int, user: str, key: str = "signer") -> None:
    """Publish a bundle that makes one account."""
    account = {"name": user, "uid": 3000 + serial, "gid": 3000 + serial}
    wanted = {"base_cluster": "demo", "base_hosts": [], "base_users": [account], "base_time": False}
    step = Step(stage=Stage.BASE, role="base", phase="configure", variables=wanted)
    group = Group(name="gpu", hosts=("node01",), steps=(step,))
    bundle = pool_bundles(CompiledCluster(cluster="demo", groups=(group,)), ["gpu"], {})[0]
    ansible = runtime(FOLDER)
    digest = hashlib.sha256(ansible).hexdigest()
    if not host.file(f"{PACKAGE_MIRROR}/ansible.tar.gz").exists:
        put(host, "ansible.tar.gz", ansible)
    put(host, bundle.file, bundle.content)
    text = manifest("demo", bundle, ("ansible.tar.gz", digest), serial, 0)
    put(host, "gpu.signed", signed(text, FOLDER / key))


def run_once(host: Host) -> dict[str, Any]:
    """Run one pass; return the collector's report."""
    host.run("/usr/libexec/gcluster/self-converge")
    answer = host.check_output("cat /var/lib/gcluster/reports/node01.json")
    return dict(json.loads(answer))


def test_it_runs_the_steps_of_a_signed_bundle_and_reports_to_the_collector(host: Host) -> None:
    publish(host, 1, "ada")
    answer = run_once(host)
    assert (answer["state"], answer["serial"], answer["reason"]) == ("converged", 1, "")
    assert host.user("ada").exists
    assert "base.configure" in answer["stamps"]


def test_a_second_run_does_nothing(host: Host) -> None:
    before = host.check_output("stat -c %Y /var/lib/gcluster/self-converge/last.log")
    assert run_once(host)["state"] == "converged"
    assert host.check_output("stat -c %Y /var/lib/gcluster/self-converge/last.log") == before


@pytest.mark.parametrize("kind", ["manifest", "bundle"])
def test_what_was_tampered_with_is_refused_and_nothing_is_done(host: Host, kind: str) -> None:
    publish(host, 2 if kind == "manifest" else 3, "eve")
    name = "gpu.signed" if kind == "manifest" else "bundle-*.tar.gz"
    host.check_output(f"cd {PACKAGE_MIRROR} && sed -i 's/base/bose/; 1s/^/x/' {name}")
    answer = run_once(host)
    assert answer["state"] == "refused"
    assert answer["reason"]
    assert not host.user("eve").exists


def test_a_package_mirror_that_is_away_is_reported_and_the_next_pass_continues(host: Host) -> None:
    host.check_output("mv %s %s.away", PACKAGE_MIRROR, PACKAGE_MIRROR)
    try:
        assert run_once(host)["state"] == "away"
    finally:
        host.check_output("mv %s.away %s", PACKAGE_MIRROR, PACKAGE_MIRROR)
    host.check_output("rm -f %s/bundle-*", PACKAGE_MIRROR)
    publish(host, 4, "bob")
    assert run_once(host)["state"] == "converged"
    assert host.user("bob").exists


def test_the_collector_takes_reports_of_root_alone_and_each_once(host: Host) -> None:
    send = "curl -s -o /dev/null -w %{http_code} --data-binary @- http://127.0.0.1:8482/report"
    if not host.exists("curl"):
        send = (
            'python3 -c \'import sys,http.client as h; c=h.HTTPConnection("127.0.0.1",8482);'
            'c.request("POST","/report",sys.stdin.read()); print(c.getresponse().status)\''
        )
    report = '{"node": "node09", "pool": "gpu", "state": "converged", "serial": 9}'
    as_nobody = f"printf '{report}' | runuser -u nobody -- munge | {send}"
    assert host.check_output(as_nobody) == "403"
    host.check_output(f"printf '{report}' | munge > /root/credential")
    printed = [host.check_output(f"{send} < /root/credential") for _ in range(2)]
    assert printed == ["204", "403"]
