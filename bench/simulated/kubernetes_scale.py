"""Kubernetes with 1,000 simulated GPU nodes and 5,000 pods, by the compiled priorities and quotas.

Real: API server, etcd, scheduler and controllers of our bundle, as processes; namespaces, quotas,
priorities, roles and admission rules as `gcluster compile` writes them. Simulated: the nodes and
what runs on them (kwok), with the labels that the compiled nodes.yaml gives. Kueue isn't there, so
nothing is queued: the scheduler and the quotas alone decide. The nodes' heartbeats may be an hour
late: on two cores late ones would be taken for nodes that are gone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from ..timing import Result, arguments, report, with_bytecode
from .api_server import ApiServer
from .slurm_scale import hall_spec

NODES = 1_000
GPUS = 8
PODS_OF_A_JOB = 50
JOBS = {("nlp", "urgent"): 20, ("nlp", "scavenger"): 40, ("vision", "scavenger"): 40}
"""(account, QOS) -> jobs: 5,000 pods of one GPU each."""
LIMIT_S = 120.0
"""For the pods, from the first job to the last pod with a node: 42 a second. Kubernetes' own
objective is 100 a second on a machine for the control plane alone; here it shares two cores with
kwok and the controllers (kubernetes/perf-tests, scheduler throughput)."""
_GIVE_UP_S = 900.0
_AT_ONCE = 100
_KWOK = Path(__file__).with_name("kwok")
_STAGES = (
    "node/fast/node-initialize.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-delete.yaml",
)


SCHEDULER = """\
scheduler:
  type: kubernetes
  kueue: false
  cni: cilium
  pod_cidr: 10.200.0.0/14
  qos:
    urgent: {priority: 1000, preempts: [scavenger], max_time: 2h}
    scavenger: {priority: 1, preemptible: requeue}
  accounts:
    nlp: {gpu_quota: 3000, users: [ada]}
    vision: {gpu_quota: 2000, users: [bob], qos: [scavenger], default_qos: scavenger}
users:
  - {name: ada, uid: 2001}
  - {name: bob, uid: 2002}
"""
"""Two accounts and two QOS; all nodes are in the partition main."""


def compiled(folder: Path) -> Path:
    """Return the folder kubernetes/ of what gcluster compiles of the large cluster."""
    spec, out = folder / "scale.yaml", folder / "compiled"
    spec.write_text(hall_spec(NODES) + SCHEDULER, encoding="utf-8")
    command = [
        str(Path(sys.executable).parent / "gcluster"),
        "compile",
        str(spec),
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True, env=with_bytecode())
    return out / "kubernetes"


def kwok(folder: Path) -> Path:
    """Return kwok, compiled from its Go module."""
    out = folder / "kwok"
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -trimpath -mod=readonly"}
    command = ["go", "build", "-ldflags", "-s -w", "-o", str(out), "."]
    own = {**os.environ, "GOTOOLCHAIN": "auto", **settings}
    subprocess.run(command, check=True, cwd=_KWOK, env=own, capture_output=True)
    return out


def stages(folder: Path) -> Path:
    """Return kwok's own stages for nodes that are well and pods that go on running, in one file."""
    requested = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    own = {**os.environ, "GOTOOLCHAIN": "auto", "GOFLAGS": "-mod=readonly"}
    answer = subprocess.run(
        requested, check=True, cwd=_KWOK, env=own, capture_output=True, text=True
    )
    base, out = Path(answer.stdout.strip()) / "kustomize/stage", folder / "stages.yaml"
    texts = [(base / name).read_text(encoding="utf-8") for name in _STAGES]
    out.write_text("\n---\n".join(texts), encoding="utf-8")
    return out


def objects_in(folder: Path) -> Iterator[Any]:
    """Yield the objects of a compiled folder."""
    for path in sorted(folder.glob("*.yaml")):
        if path.name != "kustomization.yaml":
            text = path.read_text(encoding="utf-8")
            yield from (made for made in yaml.load_all(text, Loader=yaml.CSafeLoader) if made)


def nodes(folder: Path) -> list[dict[str, Any]]:
    """Return a node for each of the compiled ones, which kwok takes for its own."""
    objects = yaml.load(
        (folder / "nodes.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    size = {"cpu": "224", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {**one["labels"], "kubernetes.io/hostname": name},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {"taints": one["taints"]},
            "status": {"allocatable": size, "capacity": size},
        }
        for name, one in sorted(objects.items())
    ]


def job(account: str, qos: str, number: int, pods: int = PODS_OF_A_JOB) -> dict[str, Any]:
    """Return a Job of pods with one GPU each, in the form that the compiled rules require."""
    gpu = {"nvidia.com/gpu": "1"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{qos}-{number}", "namespace": account},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "activeDeadlineSeconds": 3600,
            "template": {
                "spec": {
                    "priorityClassName": qos,
                    "restartPolicy": "Never",
                    "nodeSelector": {"partition.gcluster.local/main": "true"},
                    "containers": [
                        {
                            "name": "work",
                            "image": "example.org/none:1",
                            "resources": {"requests": gpu, "limits": gpu},
                            "securityContext": {
                                "runAsNonRoot": True,
                                "allowPrivilegeEscalation": False,
                                "capabilities": {"drop": ["ALL"]},
                                "seccompProfile": {"type": "RuntimeDefault"},
                            },
                        }
                    ],
                }
            },
        },
    }


def applied(api: ApiServer, objects: list[Any]) -> None:
    """Apply objects, a hundred at a time; whatever is refused ends the benchmark."""
    for first in range(0, len(objects), _AT_ONCE):
        answer = api.apply(objects[first : first + _AT_ONCE])
        if answer.returncode != 0:
            raise SystemExit(answer.stderr[-2000:])


def waited(what: str, done: Callable[[], bool]) -> float:
    """Wait until something holds; return the seconds."""
    began = time.perf_counter()
    print(f"{what} …", file=sys.stderr, flush=True)
    while not done():
        if time.perf_counter() - began > _GIVE_UP_S:
            raise SystemExit(f"{what}: not in {_GIVE_UP_S:.0f} s")
        time.sleep(1)
    return time.perf_counter() - began


def placed_pods(api: ApiServer) -> int:
    """Return how many pods have a node; 0 while one is waiting, which is a fast query."""
    requested = "/api/v1/pods?fieldSelector=spec.nodeName%3D&limit=1"
    if json.loads(api.kubectl("get", f"--raw={requested}").stdout)["items"]:
        return 0
    return sum(by_node(api).values())


def ready_nodes(api: ApiServer) -> int:
    """Return how many nodes are ready."""
    words = "{range .items[*]}{.status.conditions[?(@.type=='Ready')].status}{'\\n'}{end}"
    return api.kubectl("get", "nodes", f"--output=jsonpath={words}").stdout.split().count("True")


def by_node(api: ApiServer) -> dict[str, int]:
    """Return node -> pods on it, of the pods that have one."""
    words = "{range .items[*]}{.spec.nodeName}{'\\n'}{end}"
    names = api.kubectl("get", "pods", "--all-namespaces", f"--output=jsonpath={words}").stdout
    found: dict[str, int] = {}
    for name in names.split():
        found[name] = found.get(name, 0) + 1
    return found


def used(api: ApiServer, account: str) -> tuple[int, int]:
    """Return the GPUs that an account's quota counts, and how many it has."""
    answer = json.loads(api.kubectl("get", "resourcequota", f"-n{account}", "--output=json").stdout)
    [status] = [
        one["status"]
        for one in answer["items"]
        if "requests.nvidia.com/gpu" in one["status"]["hard"]
    ]
    key = "requests.nvidia.com/gpu"
    used_gpus, most = (status[part][key].replace("k", "000") for part in ("used", "hard"))
    return int(used_gpus), int(most)  # the API server writes 3000 as 3k


def measure(api: ApiServer, folder: Path, program: Path, config: Path) -> list[Result]:
    """Create nodes and pods, and check that they match the spec."""
    for part in ("namespaces", "accounts"):
        applied(api, list(objects_in(folder / part)))
    words = ["--manage-all-nodes", f"--kubeconfig={api.kubeconfig}", f"--config={config}"]
    api.run("kwok", *words, program=program)
    api.run_scheduler(with_nodes=True)
    account = ("get", "serviceaccount", "default", "-nnlp")
    waited("controllers", lambda: api.kubectl(*account, check=False).returncode == 0)
    began = time.perf_counter()
    applied(api, nodes(folder))
    waited(f"{NODES:,} nodes ready", lambda: ready_nodes(api) == NODES)
    nodes_s = time.perf_counter() - began
    wanted = [job(a, q, n) for (a, q), jobs in JOBS.items() for n in range(jobs)]
    pods = len(wanted) * PODS_OF_A_JOB
    began = time.perf_counter()
    applied(api, wanted)
    jobs_s = time.perf_counter() - began
    waited(f"{pods:,} pods placed", lambda: placed_pods(api) >= pods)
    pods_s = time.perf_counter() - began
    placed = by_node(api)
    full = max(placed.values())
    over = _refused(api)
    return [
        Result(name="nodes ready", value=nodes_s, unit="s"),
        Result(name="jobs taken", value=jobs_s, unit="s"),
        Result(name=f"{pods:,} pods placed", value=pods_s, unit="s", limit=LIMIT_S),
        Result(name="pods a second", value=pods / pods_s, unit="/s"),
        Result(name="pods without a node", value=pods - sum(placed.values()), unit="", limit=0),
        Result(name="most GPUs asked of a node", value=full, unit="", limit=GPUS),
        Result(name="GPUs over an account's quota", value=over, unit="", limit=0),
    ]


def _refused(api: ApiServer) -> int:
    """Request more than vision's quota has; return by how much it was exceeded."""
    applied(api, [job("vision", "scavenger", 999, pods=8)])
    time.sleep(5)
    return max(0, *(u - hard for u, hard in (used(api, account) for account, _ in JOBS)))


def main() -> int:
    """Measure and report."""
    options = arguments(str(__doc__).splitlines()[0]).parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # processes end with the context
    with tempfile.TemporaryDirectory(prefix="gcluster-kubernetes-scale-") as name:
        folder = Path(name)
        program = kwok(folder)
        files = compiled(folder)
        with ApiServer() as api:
            results = measure(api, files, program, stages(folder))
    title = f"{NODES:,} simulated GPU nodes under Kubernetes, API server to scheduler real"
    return report(title, results, as_json=options.json, ratios=options.ratios)


if __name__ == "__main__":
    sys.exit(main())
