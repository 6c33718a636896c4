"""Two controllers: one is killed, the other continues with the same queue.

The machines are containers. The state that the controllers share is one folder that both see, and
a double of `mount.nfs` mounts it: the kernel under containers has no NFS. systemd's mount units,
Slurm, slurmdbd, MariaDB and slurmrestd are real. The tests run in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.stacks.local.image.base_image import node_reference

from .conftest import LiveCluster, until
from .room import Room, podman

pytestmark = [pytest.mark.local, pytest.mark.slurm]

HEADS = ("head01", "head02")
SAVED_S = 330
"""Slurm's PERIODIC_CHECKPOINT (300 s), after which what it knows of accounts is saved."""
TAKEN_OVER_S = 240
"""SlurmctldTimeout (120 s), after which the second one takes over, with its polls around it."""

SHARE = r"""
mkdir -p /shared
dpkg-divert --quiet --local --divert /usr/sbin/mount.nfs.real --rename --add /usr/sbin/mount.nfs
printf '#!/bin/sh\nexec mount -i -o bind /shared "$2"\n' > /usr/sbin/mount.nfs
cat > /usr/local/bin/findmnt <<'END'
#!/bin/sh
case " $* " in *" --json "*)
  /usr/bin/findmnt "$@" >/dev/null || exit
  echo '{"filesystems": [{"source": "server:/state", "fstype": "nfs4",
         "options": "rw,vers=4.2,hard,proto=tcp,nconnect=8"}]}' ;;
*) exec /usr/bin/findmnt "$@" ;;
esac
END
chmod 0755 /usr/sbin/mount.nfs /usr/local/bin/findmnt
"""
"""What a controller is given in place of the kernel's NFS."""
SERVE = "systemd-run --quiet --unit=nfs-double python3 -m http.server 2049"
"""A port that answers, for the question whether the server is there."""
REST = """
import json, re, subprocess, urllib.error, urllib.request

def ask(path, token, body=None):
    request = urllib.request.Request("http://127.0.0.1:6820" + path, body)
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("X-SLURM-USER-NAME", "ada")
        request.add_header("X-SLURM-USER-TOKEN", token)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {}

made = subprocess.check_output(["scontrol", "token", "username=ada", "lifespan=300"], text=True)
token = made.strip().rpartition("=")[2]
paths = ask("/openapi/v3", token)[1]["paths"]
path = max(path for path in paths if re.fullmatch("/slurm/v[0-9.]+/job/submit/?", path))
body = json.dumps(JOB).encode()
print(json.dumps([ask(path, token, body), ask(path, "", body)]))
"""
"""Sends a job as ada by slurmrestd's newest API, once with her token and once with none."""
JOB = {
    "script": "#!/bin/sh\nsleep 600",
    "job": {
        "name": "by-rest",
        "current_working_directory": "/",
        "environment": ["PATH=/bin:/usr/bin"],
        "standard_output": "/dev/null",
        "time_limit": {"set": True, "number": 60},
    },
}


class Pair:
    """Two controllers, a node, and jobs."""

    def __init__(self, live: LiveCluster, room: Room) -> None:
        """Write the spec."""
        self.live, self.room = live, room
        hosts = {
            name: {"name": name, "address": room.address(name), "host_key": room.host_key(name)}
            for name in room.hosts
        }
        gpu = room.address("gpu01")
        self.spec: dict[str, Any] = {
            "apiVersion": "gcluster/v1",
            "name": live.name,
            "sites": {
                "room": {"provider": "bare-metal", "ssh": {"user": "root", "key": str(room.key)}}
            },
            "pools": {
                "head": {"site": "room", "role": "controller", "hosts": [hosts[n] for n in HEADS]},
                "gpu": {"site": "room", "machine": "sim.h100x8", "hosts": [hosts["gpu01"]]},
            },
            "storage": {"state": {"type": "nfs", "mount": "/state", "server": gpu,
                                  "pools": ["head"]}},
            "scheduler": {"type": "slurm", "state_save": "state", "rest_api": True,
                          "accounting": {"pool": "head"}},
            "users": [{"name": "ada", "uid": 2001}],
            "smoke": {"allreduce": {"sizes": "8B..64KiB", "iterations": 1}},
        }  # fmt: skip
        self.write()

    def write(self) -> None:
        """Write the spec as it is now."""
        self.live.spec.write_text(yaml.safe_dump(self.spec, sort_keys=False))

    def on(self, host: str, command: str, stdin: str = "") -> str:
        """Run a shell command on a machine, past gcluster."""
        name = f"{self.room.name}-{host}"
        return podman("exec", "--interactive", name, "sh", "-c", command, stdin=stdin)

    def jobs(self, host: str) -> list[str]:
        """Return the queue as squeue prints it there: id, state, start of those that run."""
        ask = "squeue --noheader --format='%i %T %S' 2>&1 || true"
        lines = self.on(host, ask).splitlines()
        return sorted(re.sub("PENDING .*", "PENDING", line) for line in lines)


@pytest.fixture(scope="module")
def pair(live: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The machines, with a folder that both controllers see."""
    folder: Path = tmp_path_factory.mktemp("pair")
    shared = folder / "shared"
    shared.mkdir()
    room = Room(folder, (*HEADS, "gpu01"))
    (baked,) = live.json("image", str(live.spec))["sites"]
    try:
        head = ("--cap-add=SYS_ADMIN", f"--volume={shared}:/shared:rw")
        room.start(node_reference(baked["key"]), more=dict.fromkeys(HEADS, head))
        made = Pair(live, room)
        for name in HEADS:
            made.on(name, SHARE)
        made.on("gpu01", SERVE)
        yield made
    finally:
        room.stop()


def test_up_sets_up_both_controllers_on_one_state(pair: Pair) -> None:
    result = pair.live.json("up", str(pair.live.spec), "--yes")
    assert result["failed_hosts"] == {}
    assert result["verdict"]["verdict"] == "pass"
    output = pair.on("gpu01", "scontrol ping")
    assert output.count("is UP") == len(HEADS)
    states = {
        pair.on(name, "sed -n s/^StateSaveLocation=//p /etc/slurm/slurm.conf") for name in HEADS
    }
    assert states == {f"/state/gcluster/{pair.live.name}/slurmctld"}


def test_slurmrestd_takes_a_job_of_who_has_a_token_and_no_others_s(pair: Pair) -> None:
    program = REST.replace("JOB", repr(JOB))
    (status, taken), (refused, _) = json.loads(pair.on("head01", "python3 -", stdin=program))
    assert (status, taken["errors"], refused) == (200, [], 401)
    owner = pair.on("head01", f"squeue --noheader --job={taken['job_id']} --format='%u %j'")
    assert owner == "ada by-rest"


def test_a_slurmdbd_that_stops_is_replaced_by_the_backup(pair: Pair) -> None:
    pair.on("head01", "systemctl stop slurmdbd")
    known = "timeout 20 sacctmgr --noheader --parsable2 show cluster format=Cluster 2>&1 || true"
    try:
        until(lambda: pair.on("gpu01", known) == pair.live.name, 60)
    finally:
        pair.on("head01", "systemctl start slurmdbd")


def test_the_second_controller_continues_with_the_jobs_of_one_that_failed(pair: Pair) -> None:
    until(lambda: [line.split()[1] for line in pair.jobs("gpu01")] == ["RUNNING"])
    send = "cd /tmp && runuser -u ada -- sbatch --output=/dev/null --hold --wrap true"
    for _ in range(3):
        pair.on("head01", send)
    before = pair.jobs("gpu01")
    assert len(before) == 4
    # The database ends with it: accounts are then those that slurmctld saves every five minutes.
    saved = "test -s /state/gcluster/*/slurmctld/assoc_mgr_state && echo yes || true"
    until(lambda: pair.on("head02", saved) == "yes", SAVED_S)
    podman("kill", f"{pair.room.name}-head01")
    until(lambda: pair.jobs("gpu01") == before, TAKEN_OVER_S)
    pair.on("head02", send)
    queue = pair.live.json("status", str(pair.live.spec), expect=1)["queue"]
    assert (queue["running"], queue["pending"]) == (1, 4)


def test_the_first_controller_takes_the_queue_back_when_it_is_there_again(pair: Pair) -> None:
    before = pair.jobs("gpu01")
    podman("start", f"{pair.room.name}-head01")
    first = "scontrol ping | grep -q '(primary) .*is UP'"
    pair.on("gpu01", f"for n in $(seq 60); do {first} && exit; sleep 2; done; exit 1")
    pair.on("head02", "systemctl stop slurmctld")
    try:
        until(lambda: pair.jobs("gpu01") == before)
    finally:
        pair.on("head02", "systemctl start slurmctld")
