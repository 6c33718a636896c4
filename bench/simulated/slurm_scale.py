"""Slurm with the compiled configuration of a large cluster: 1,008 slurmd on ports of one container.

Real: slurmctld, slurmd, MUNGE, the scheduler, and slurm.conf, gres.conf and topology.conf as role
slurm writes them. Simulated: the machines. All slurmd share this machine's cores and one network
address, so NodeAddr, NodeHostname, Port and the spool's folder are replaced, and the health check
(a process a node) is `true`.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..nodes.local_up import spec_text
from ..timing import Result, arguments, report, with_bytecode

ROOT = Path(__file__).parents[2]
NODES = 1_008
UNIT = 32
"""Nodes of a scalable unit, a block of the topology (NVIDIA's reference architecture, HGX H100)."""
FIRST_PORT = 17_000
STEP_NODES = 64
"""Nodes of a job step that is timed: one of all nodes ends nowhere that they share two cores."""
PENDING = 5_000
SINFO_SECONDS = 1.0
EXPORTER_SHARE = 0.01
"""Of a core that slurmctld may spend on the figures of monitoring, which are read every 15 s."""
EXPORTER_EVERY_S = 15
GIVE_UP_SECONDS = 300.0
ROUNDS = 9
PROCESSES = 32_768
"""What a container is allowed everywhere; a slurmd has about ten threads."""
CONTAINER = "gcluster-bench-slurm-scale"


def hall_spec(nodes: int) -> str:
    """Return the sites and pools of a cluster of simulated nodes in blocks, without a scheduler."""
    units = [(first, min(first + UNIT - 1, nodes)) for first in range(1, nodes + 1, UNIT)]
    hosts = "".join(
        f"      - {{name: 'gpu[{first:04d}-{last:04d}]', block: su{unit:02d}}}\n"
        for unit, (first, last) in enumerate(units, 1)
    )
    return f"""apiVersion: gcluster/v1
name: scale
sites: {{hall: {{provider: bare-metal, ssh: {{user: ops}}, network: {{cidr: 10.0.0.0/16}}}}}}
pools:
  head: {{site: hall, role: controller, hosts: [{{name: scale, address: 10.0.0.1}}]}}
  gpu:
    site: hall
    machine: sim.h100x8
    hosts:
{hosts}"""


def large_spec(nodes: int) -> str:
    """Return a cluster of simulated nodes in blocks, with two partitions over all of them."""
    partitions = """\
scheduler:
  type: slurm
  partitions:
    train: {pools: [gpu], default: true, max_time: 2d}
    urgent: {pools: [gpu], tier: 10, max_time: 1h}
"""
    return hall_spec(nodes) + partitions


def gcluster(*words: str) -> str:
    """Run gcluster; return what it prints."""
    command = [str(Path(sys.executable).parent / "gcluster"), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=with_bytecode())
    return done.stdout


def written_files(folder: Path, nodes: int) -> dict[str, str]:
    """Return path -> content of what role slurm writes on the controller of the large cluster."""
    from gcluster.lifecycle.bundle.role_tasks import (  # noqa: PLC0415  # Ansible takes a second
        FACTS,
        filled_tasks,
        loaded,
        role_variables,
    )

    spec = folder / "scale.yaml"
    spec.write_text(large_spec(nodes), encoding="utf-8")
    gcluster("compile", str(spec), "--out", str(folder / "compiled"))
    group = json.loads((folder / "compiled/groups/head.json").read_text(encoding="utf-8"))
    phase_variables = {}
    for step in group["steps"]:
        if (step["role"], step["phase"]) == ("slurm", "configure"):
            phase_variables = step["variables"]
    role = ROOT / "roles/slurm"
    variables = role_variables(role, phase_variables, FACTS["debian-13"])
    tasks = loaded(role / "tasks/configure.yml")
    answered = {"slurm_written": {"changed": True}, "slurm_runs": {"rc": 3}}
    variables |= answered | {"slurm_state_unit": {}, "slurm_started": {"changed": True}}
    found: dict[str, str] = {}
    for task in filled_tasks(tasks, variables, role):
        found |= task.get("gcluster.cluster.managed_files", {}).get("files", {})
    return found


def on_one_machine(text: str, nodes: int) -> str:
    """Return slurm.conf for nodes that are processes here."""
    ports = f"{FIRST_PORT + 1}-{FIRST_PORT + nodes}"
    place = f" NodeAddr=127.0.0.1 NodeHostname=scale Port=[{ports}]"
    text = re.sub(r"(?m)^(NodeName=\S+) NodeAddr=\S+", rf"\1{place}", text)
    text = re.sub(r"(?m)^(SlurmctldHost=\w+)\(.*\)", r"\1(127.0.0.1)", text)
    text = re.sub(r"(?m)^SlurmdSpoolDir=.*", "SlurmdSpoolDir=/var/spool/slurmd/%n", text)
    text = re.sub(r"(?m)^HealthCheckProgram=.*", "HealthCheckProgram=/bin/true", text)
    own = "SlurmdPidFile=/run/slurmd.%n.pid\nSlurmdLogFile=/var/log/slurm/%n.log\n"
    return f"{text}\n{own}"


def inside(script: str, stdin: str = "") -> str:
    """Run a shell script in the container; return what it prints."""
    done = subprocess.run(
        ["podman", "exec", "--interactive", CONTAINER, "sh", "-c", script],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script[:200]}\n{done.stderr[-2000:]}")
    return done.stdout.strip()


def start(image: str, files: dict[str, str], nodes: int) -> float:
    """Start controller and nodes; return the seconds until all are idle."""
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = [
        *("--pids-limit", "-1"),
        *("--ulimit", f"nofile={open_files}:{open_files}"),
        *("--ulimit", f"nproc={PROCESSES}:{PROCESSES}"),
    ]
    runtime = subprocess.run(
        ["podman", "info", "--format", "{{.Host.OCIRuntime.Name}}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    subprocess.run(
        [
            *("podman", "run", "--runtime", runtime, "--detach", "--name", CONTAINER, *limits),
            *("--hostname", "scale", "--systemd=always", "--cap-add=SYS_NICE"),
            *(image, "/sbin/init"),
        ],
        check=True,
        capture_output=True,
    )
    inside(
        "for i in $(seq 100); do systemctl is-system-running --wait >/dev/null && break; done; true"
    )
    for path, content in files.items():
        text = on_one_machine(content, nodes) if path.endswith("/slurm.conf") else content
        inside(f"mkdir -p $(dirname {path}) && cat > {path}", stdin=text)
    inside(
        "cd /etc/munge; [ -e munge.key ] || { dd if=/dev/urandom of=munge.key bs=1 count=1024;"
        " chown munge: munge.key; chmod 400 munge.key; };"
        " systemctl restart munge; mkdir -p /var/spool/slurmd /var/log/slurm /var/lib/slurm/ctld;"
        " chown -R slurm: /var/log/slurm /var/lib/slurm"
    )
    names = f"seq -f /var/spool/slurmd/gpu%04.0f {nodes}"
    inside(f"touch $(seq -f /dev/nvidia%.0f 0 7); mkdir -p $({names})")
    began = time.perf_counter()
    inside("systemctl restart slurmctld")
    inside(f"for i in $(seq -f %04.0f {nodes}); do slurmd -N gpu$i || exit 1; done")
    wait(lambda: inside("sinfo --noheader --partition train --format '%T %D'") == f"idle {nodes}")
    return time.perf_counter() - began


def wait(holds: Callable[[], bool]) -> None:
    """Return when something holds.

    Raises:
        RuntimeError: it never did.
    """
    began = time.perf_counter()
    while not holds():
        if time.perf_counter() - began > GIVE_UP_SECONDS:
            raise RuntimeError(inside("sinfo; tail -20 /var/log/slurm/slurmctld.log || true"))
        time.sleep(0.5)


def seconds(script: str, rounds: int = 1) -> float:
    """Return the median seconds of a script, as the container's shell counts them."""
    timed = f"t=$(date +%s%N); {{ {script}; }} >/dev/null || exit 1; echo $(( $(date +%s%N) - t ))"
    return statistics.median(int(inside(timed)) / 1e9 for _ in range(rounds))


def exporter() -> list[Result]:
    """Return what slurmctld spends on the figures of monitoring, read as on a controller.

    Its seconds on a core are the kernel's (proc(5), fields utime and stime, 10 ms each): of all
    rounds together, with what it does by itself in that time.
    """
    folder = "/usr/local/libexec/gcluster-bench"
    inside(f"mkdir -p {folder} /run/figures")
    for path in sorted((ROOT / "roles/slurm_exporter/files/libexec").glob("*.py")):
        inside(f"cat > {folder}/{path.name}", stdin=path.read_text(encoding="utf-8"))
    program = f"python3 {folder}/slurm-metrics.py"
    figures = f"GCLUSTER_TEXTFILES=/run/figures GCLUSTER_SLURM_TOTALS=/run/figures/totals {program}"
    spent = "awk '{ print $14 + $15 }' /proc/$(pidof -s slurmctld)/stat"
    before = int(inside(spent))
    wall = seconds(f"{figures} nodes && {figures} jobs", ROUNDS)
    ticks = int(inside(spent)) - before
    written = int(inside("cat /run/figures/*.prom | grep -c '^[a-z]'"))
    share = ticks / 100 / ROUNDS / EXPORTER_EVERY_S
    return [
        Result(name="figures of monitoring, written", value=wall, unit="s"),
        Result(name="samples of them", value=written, unit="series"),
        Result(
            name="of a core, slurmctld for them every 15 s",
            value=share,
            unit="",
            limit=EXPORTER_SHARE,
        ),
    ]


def measure(image: str, nodes: int) -> list[Result]:
    """Return what was measured; the container is removed, also on failure."""
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        files = written_files(Path(name), nodes)
    try:
        idle = start(image, files, nodes)
        proportional = inside(
            "cat /proc/[0-9]*/smaps_rollup | awk '/^Pss:/ { s += $2 } END { print s }'"
        )
        megabytes = int(proportional) * 1024 / 1e6
        found = [
            Result(
                name=f"controller and {nodes:,} slurmd until all are idle", value=idle, unit="s"
            ),
            Result(name="memory of all of them (PSS)", value=megabytes, unit="MB"),
            Result(name="sinfo", value=seconds("sinfo", ROUNDS), unit="s", limit=SINFO_SECONDS),
            Result(name="scontrol reconfigure", value=seconds("scontrol reconfigure"), unit="s"),
        ]
        wait(
            lambda: inside("sinfo --noheader --partition train --format '%T %D'") == f"idle {nodes}"
        )
        step = f"srun --nodes={STEP_NODES} --ntasks-per-node=1 --cpus-per-task=1 true"
        found.append(Result(name=f"srun of {STEP_NODES:,} nodes", value=seconds(step), unit="s"))
        jobs = (
            f"sbatch --array=1-{PENDING // 5} --nodes=2 --gpus-per-node=8 --time=1:00:00"
            " --hold --output=/dev/null --wrap 'sleep 1'"
        )
        taken = seconds(f"for i in 1 2 3 4 5; do {jobs}; done")
        found += [
            Result(name=f"sbatch of {PENDING:,} held jobs, five arrays", value=taken, unit="s"),
            Result(
                name=f"sinfo with {PENDING:,} jobs waiting",
                value=seconds("sinfo", ROUNDS),
                unit="s",
                limit=SINFO_SECONDS,
            ),
            Result(name="squeue of them", value=seconds("squeue --array", ROUNDS), unit="s"),
        ]
        found += exporter()
        inside("scancel --user root; true")
        blocks = len(re.findall(r"BlockName=", inside("scontrol show topology")))
        found.append(Result(name="blocks of the topology", value=blocks, unit=""))
    finally:
        subprocess.run(
            ["podman", "rm", "-f", "-v", "-t", "0", CONTAINER], capture_output=True, check=False
        )
    return found


def main() -> int:
    """Measure, and report against the limits."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--nodes", type=int, default=NODES, help="slurmd to start")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        spec = Path(name, "image.yaml")
        spec.write_text(spec_text("bench-scale", 1), encoding="utf-8")
        (baked,) = json.loads(gcluster("image", str(spec), "--format", "json"))["sites"]
    image = f"localhost/gcluster/node:{baked['key'][:16]}"
    title = "one Slurm cluster of simulated nodes, on one machine"
    return report(title, measure(image, options.nodes), as_json=options.json, ratios=options.ratios)


if __name__ == "__main__":
    sys.exit(main())
