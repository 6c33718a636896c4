"""An operator's day on real nodes: drains, failures explained, keys, and another controller.

The tests run in order on the site of four nodes that the tests of accounts have left, with 8
running and 200 pending jobs.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from gcluster.lifecycle.smoke.run import STAGE as ALLREDUCE

from .conftest import until
from .slurm_site import PARTITION, Site

pytestmark = [pytest.mark.local, pytest.mark.slurm]

RUNNING, PENDING = 8, 200
QUEUE = "squeue --noheader --format='%i %T %S' --states=RUNNING | sort"
ANSWERS_S = 90
SAVED_S = 10
"""Slurm writes its queue down up to 5 s after a change (SAVE_MAX_WAIT): a kill loses the rest."""
NODE_DOWN_S = 150
"""Slurm's SlurmdTimeout of simulated nodes (30 s), with its own polls around it."""
SEND = "cd /tmp && runuser -u ada -- sbatch --parsable --output=/dev/null --time=50"
SLURM = "/var/lib/slurm"
FAKED = "/etc/systemd/system/munge.service.d/clock.conf"
AHEAD = (
    "library=$(echo /usr/lib/*/faketime/libfaketime.so.1) && "
    f"mkdir -p $(dirname {FAKED}) && "
    f"printf '[Service]\\nEnvironment=LD_PRELOAD=%s FAKETIME=+900\\n' $library > {FAKED} && "
    "systemctl daemon-reload && systemctl restart munge"
)
"""Sets a node's munged a quarter of an hour ahead."""


def podman(*words: str) -> str:
    """Run podman."""
    done = subprocess.run(["podman", *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def small_disk(container: str, daemon: str, *, mib: int) -> None:
    """Put what Slurm keeps on a machine on a disk of so many MiB, and fill that."""
    move = (
        f"systemctl stop {daemon} && cp -a {SLURM} /root/kept && "
        f"mount -t tmpfs -o size={mib}m,mode=0755 tmpfs {SLURM} && cp -a /root/kept/. {SLURM}/ && "
        f"systemctl start {daemon}; dd if=/dev/zero of={SLURM}/fill bs=4k 2>/dev/null; true"
    )
    podman("exec", "--privileged", container, "sh", "-c", move)


@pytest.fixture(scope="module")
def cluster(site: Site) -> Site:
    """The site as its spec says, with no job."""
    site.up()
    site.clear()
    return site


@pytest.mark.core
def test_a_drained_node_is_reported_with_its_reason_and_since_when(cluster: Site) -> None:
    (node,) = cluster.do("drain", "gpu004", "--reason", "link 3 is off")["nodes"]
    assert (node["in_service"], node["reason"]) == (False, "link 3 is off")
    status = cluster.do("status", expect=1)
    (seen,) = [n for n in status["nodes"] if n["name"] == "gpu004"]
    assert seen["reason"] == "link 3 is off"
    assert seen["out_since"].endswith("Z")
    assert cluster.do("resume", "gpu004")["nodes"][0]["in_service"]
    # slurmctld soon pings again a node that doesn't respond for the moment ("idle*").
    status = ("status", str(cluster.live.spec))
    until(lambda: cluster.live.gcluster(*status, expect=None).returncode == 0, ANSWERS_S)


def test_a_controller_is_neither_drained_nor_rebooted(cluster: Site) -> None:
    cluster.live.gcluster("drain", str(cluster.live.spec), "head", "--reason", "x", expect=4)
    cluster.live.gcluster("reboot", str(cluster.live.spec), "head", "--yes", expect=4)


def test_nodes_restart_one_at_a_time_and_serve_again(cluster: Site) -> None:
    """A container that restarts stops: its site starts it again."""
    done = cluster.do("reboot", "gpu[001-002]", "--at-once", "1", "--yes")
    assert done["rebooted"] == ["gpu001", "gpu002"]
    states = "sinfo --noheader --Node --nodes=gpu[001-002] --format=%T"
    # A ping of slurmctld's that was sent while the node was away may fail only now: "idle*".
    until(lambda: set(cluster.head(states).split()) == {"idle"}, ANSWERS_S)


def test_another_munge_key_on_a_node_is_reported_as_text(cluster: Site) -> None:
    cluster.live.on(
        "gpu003",
        "cp -p /etc/munge/munge.key /root/key; "
        "head -c 1024 /dev/urandom > /etc/munge/munge.key; systemctl restart munge",
    )
    try:
        until(lambda: cluster.causes().get("munge-key") == "gpu003", NODE_DOWN_S)
    finally:
        cluster.live.on("gpu003", "cp -p /root/key /etc/munge/munge.key; systemctl restart munge")
    until(lambda: cluster.causes() == {}, NODE_DOWN_S)


def test_a_clock_that_is_off_is_reported_as_text(cluster: Site) -> None:
    """Libfaketime gives a node's munged another time: containers share the clock of their host."""
    cluster.live.on("gpu003", f"apt-get -qq update && apt-get -qq -y install libfaketime; {AHEAD}")
    try:
        until(lambda: cluster.causes().get("clock-skew") == "gpu003", NODE_DOWN_S)
    finally:
        cluster.live.on("gpu003", f"rm {FAKED}; systemctl daemon-reload; systemctl restart munge")
    until(lambda: cluster.causes() == {}, NODE_DOWN_S)


def test_a_full_disk_of_a_node_is_reported_as_text(cluster: Site) -> None:
    """A file system of 2 MiB replaces the disk: no job starts there, Slurm drains the node."""
    small_disk(cluster.container("gpu004"), "slurmd", mib=2)
    job = cluster.head(f"{SEND} --requeue --nodelist=gpu004 --wrap true")
    try:
        until(lambda: cluster.causes().get("disk-full") == "gpu004", NODE_DOWN_S)
    finally:
        cluster.head(f"scancel {job}")
        podman("exec", cluster.container("gpu004"), "rm", "-f", f"{SLURM}/fill")
        cluster.do("resume", "gpu004", expect=None)
    until(lambda: cluster.causes() == {}, NODE_DOWN_S)


def test_a_node_that_loses_a_mount_takes_itself_out(cluster: Site) -> None:
    """Slurm runs the check every five minutes; here it is run once the mount is gone."""
    expected, check = "/etc/gcluster/node-health.json", "/usr/libexec/gcluster/node-health-check"
    lost = 'd["mounts"] = [{"path": "/data", "type": "lustre"}]'
    read, write = f'd = json.load(open("{expected}"))', f'json.dump(d, open("{expected}", "w"))'
    edit = f"import json; {read}; {lost}; {write}"
    cluster.live.on("gpu003", f"cp -p {expected} /root/expected; python3 -c '{edit}'; {check}")
    try:
        status = cluster.do("status", expect=1)
        (seen,) = [node for node in status["nodes"] if node["name"] == "gpu003"]
        assert seen["reason"].startswith("gcluster-health: ")
        assert "/data" in seen["reason"]
    finally:
        cluster.live.on("gpu003", f"cp -p /root/expected {expected}; {check}")
    # A healthy node is not resumed automatically, unless the spec says so.
    assert cluster.do("status", expect=1)["nodes"]
    assert cluster.do("resume", "gpu003")["nodes"][0]["in_service"]


def test_a_full_disk_of_the_controller_is_reported_as_text(cluster: Site) -> None:
    small_disk(cluster.container("head"), "slurmctld", mib=32)
    try:
        assert cluster.causes() == {"disk-full": "head"}
    finally:
        podman("exec", cluster.container("head"), "rm", "-f", f"{SLURM}/fill")
    until(lambda: cluster.causes() == {}, ANSWERS_S)


@pytest.mark.core
def test_status_counts_the_queue_with_the_tasks_of_arrays(cluster: Site) -> None:
    for _ in range(RUNNING):
        cluster.head(
            f"{SEND} --gpus-per-node=4 --nodes=1 --cpus-per-task=1 --mem=100 --wrap 'sleep 2900'"
        )
    cluster.head(f"{SEND} --array=1-{PENDING} --gpus-per-node=8 --nodes=1 --wrap 'sleep 1'")
    until(lambda: cluster.queue() == (RUNNING, PENDING), ANSWERS_S)
    # Not healthy as a whole: what was verified before a restart awaits the next `up`.
    partitions = cluster.do("status", expect=None)["queue"]["partitions"]
    assert [(p["name"], p["pending"]) for p in partitions] == [(PARTITION, PENDING)]
    assert partitions[0]["oldest_wait_s"] >= 0


@pytest.fixture
def jobs(cluster: Site) -> Iterator[None]:
    """Hold that the jobs that run before a test are the same after it, started once."""
    before = cluster.head(QUEUE)
    assert len(before.splitlines()) == RUNNING
    yield
    until(lambda: cluster.queue() == (RUNNING, PENDING), ANSWERS_S)
    assert cluster.head(QUEUE) == before


@pytest.mark.core
@pytest.mark.usefixtures("jobs")
def test_jobs_live_on_while_the_controller_is_killed(cluster: Site) -> None:
    time.sleep(SAVED_S)
    cluster.head("systemctl mask --runtime slurmctld; pkill -9 -x slurmctld; true")
    until(lambda: cluster.causes().get("slurmctld-down") == "head", ANSWERS_S)
    cluster.head("systemctl unmask --runtime slurmctld; systemctl start slurmctld")
    until(lambda: cluster.causes() == {}, ANSWERS_S)


@pytest.mark.core
@pytest.mark.usefixtures("jobs")
def test_another_key_on_every_machine_loses_no_job(cluster: Site) -> None:
    before = cluster.head("sha256sum /etc/munge/munge.key")
    rotated = cluster.live.json("rotate", "munge", str(cluster.live.spec))
    assert (len(rotated["changed"]), rotated["left"]) == (6, {})
    assert cluster.head("sha256sum /etc/munge/munge.key") != before
    until(lambda: cluster.causes() == {}, ANSWERS_S)


@pytest.mark.core
@pytest.mark.usefixtures("jobs")
def test_the_queue_survives_another_controller(cluster: Site) -> None:
    """200 pending and 8 running before; the same jobs, started when they were, after."""
    saved = cluster.do("backup")
    assert (saved["running"], saved["pending"]) == (RUNNING, PENDING)
    podman("rm", "--force", cluster.container("head"))
    assert not cluster.do("restore")["restored"]
    # Its AllReduce would wait for nodes that these jobs hold: who sees that stops it, as here.
    cluster.live.stop_up(signal.SIGINT, stage=ALLREDUCE)
    until(lambda: cluster.queue() == (RUNNING, PENDING), ANSWERS_S)


def test_a_queue_with_jobs_is_not_replaced_unasked(cluster: Site) -> None:
    cluster.live.gcluster("restore", str(cluster.live.spec), expect=4)


def test_a_node_that_fails_under_a_job_is_reported_and_its_jobs_wait_again(cluster: Site) -> None:
    podman("kill", cluster.container("gpu002"))
    until(lambda: cluster.causes().get("node-dead") == "gpu002", NODE_DOWN_S)
    until(lambda: cluster.queue() == (RUNNING - 2, PENDING + 2), NODE_DOWN_S)


def test_a_node_that_is_there_again_serves_by_itself(cluster: Site) -> None:
    """ReturnToService=2: what Slurm took out for its silence comes back when it registers."""
    podman("start", cluster.container("gpu002"))
    state = "sinfo --noheader --Node --nodes=gpu002 --format=%T | sort -u"
    until(lambda: cluster.head(state) in {"idle", "mixed", "allocated"}, NODE_DOWN_S)
    until(lambda: cluster.causes() == {}, NODE_DOWN_S)
