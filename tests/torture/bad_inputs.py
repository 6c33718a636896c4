"""Forty bad inputs, each given to every verb that takes a cluster or a spec: two tables.

Each time the command must end by itself, with an exit code of the table, without a traceback, and
with an error that says what to do next.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from .cluster import SPEC, TortureCluster
from .invariants import INVARIANTS, Step
from .process import run

_GOOD = SPEC.format(site="", count=2)

TEXTS: dict[str, bytes] = {
    "empty": b"",
    "a space": b" ",
    "only a comment": b"# nothing\n",
    "NUL bytes": b"\0" * 100,
    "no UTF-8": b"\x93\xff\xfe: [",
    "UTF-16": _GOOD.encode("utf-16"),
    "a byte order mark and nothing": b"\xef\xbb\xbf",
    "a control character": _GOOD.replace("torture", "tor\x07ture").encode(),
    "a tab as indent": _GOOD.replace("  lab", "\tlab").encode(),
    "a list": b"- a\n- b\n",
    "a number": b"42\n",
    "a string": b"hello\n",
    "null": b"null\n",
    "an open bracket": b"a: [1, 2\n",
    "an open quote": b'name: "torture\n',
    "a merge key of nothing": b"<<: *nothing\n",
    "an anchor in itself": b"a: &a [*a]\n",
    "a tag of Python": b"!!python/object/apply:os.system [id]\n",
    "two documents": (_GOOD + "---\n" + _GOOD).encode(),
    "a key twice": (_GOOD + "name: other\n").encode(),
    "an unknown key": (_GOOD + "nodes: 3\n").encode(),
    "another apiVersion": _GOOD.replace("v1", "v9").encode(),
    "no name": _GOOD.replace("name: torture\n", "").encode(),
    "a name that is a path": _GOOD.replace("torture", "../../etc/passwd").encode(),
    "a name with a space": _GOOD.replace("name: torture", "name: my cluster").encode(),
    "a name of a thousand letters": _GOOD.replace("torture", "a" * 1000).encode(),
    "an unknown provider": _GOOD.replace("simulated", "acme").encode(),
    "no sites": _GOOD.replace("  lab: {provider: simulated}\n", "").encode(),
    "a pool at no site": _GOOD.replace("site: lab", "site: den").encode(),
    "a negative count": _GOOD.replace("count: 2", "count: -2").encode(),
    "a count of a billion": _GOOD.replace("count: 2", "count: 1000000000").encode(),
    "a count that is a word": _GOOD.replace("count: 2", "count: two").encode(),
    "an unknown machine": _GOOD.replace("sim.h100x8", "h100x9").encode(),
    "a state that is no URL": (_GOOD + "state: '::'\n").encode(),
    "a state that can't be made": (_GOOD + "state: file:///proc/nothing/here\n").encode(),
    "nested a thousand deep": b"a: " + b"[" * 1000 + b"]" * 1000 + b"\n",
}
"""Name -> what is in the file."""


def _folder(place: Path) -> None:
    place.mkdir()


def _link_to_itself(place: Path) -> None:
    place.symlink_to(place.name)


def _device(place: Path) -> None:
    place.symlink_to("/dev/null")


PLACES: dict[str, Callable[[Path], None]] = {
    "not there": lambda _: None,
    "a folder": _folder,
    "a link to itself": _link_to_itself,
    "a device": _device,
}
"""Name -> what is made in the place of the file."""

VERBS: dict[str, tuple[str, ...]] = {
    "init": (),
    "size train --model": ("--machine", "dgx-h100"),
    "size serve --model": ("--machine", "dgx-h100", "--requests", "1"),
    "size own --machine dgx-h100 --rent p5.48xlarge --trace": (),
    "adopt slurm": (),
    "adopt ansible": (),
    "adopt parallelcluster": (),
    "adopt cluster-toolkit": (),
    "adopt kubespray": (),
    "adopt eksctl": (),
    "adopt hyperpod": (),
    "adopt skypilot": (),
    "adopt dstack": (),
    "adopt openhpc": (),
    "adopt warewulf": (),
    "validate": (),
    "cost": (),
    "compile": ("--out", "compiled"),
    "bundle": ("--out", "bundled"),
    "software": (),
    "burst simulate": (os.devnull,),
    "burst agent": ("--once",),
    "burst explain": ("7",),
    "burst dry-run": (os.devnull,),
    "plan": (),
    "up": ("--yes",),
    "image": ("--out", "images"),
    "smoke": (),
    "run": ("--user", "ada", "--", "true"),
    "jobs": (),
    "logs": ("7",),
    "cancel": ("7",),
    "acceptance": (),
    "repair": ("--yes",),
    "drain": ("gpu001", "--reason", "test"),
    "resume": ("gpu001",),
    "reboot": ("--yes",),
    "backup": (),
    "restore": ("--yes",),
    "state check": (),
    "state repair": ("--yes",),
    "state upgrade": ("--yes",),
    "rotate at-rest": (),
    "rotate certificate-authority": (),
    "rotate munge": (),
    "rotate service-accounts": (),
    "rotate jwt": (),
    "rotate database": (),
    "rotate signer": (),
    "rotate tunnels": (),
    "rotate monitoring": (),
    "rotate encryption": (),
    "status": (),
    "top": ("--once",),
    "report": (),
    "dashboard": (),
    "history": (),
    "show": ("RUN",),
    "drift": (),
    "ledger check": (),
    "ssh": ("gpu001", "true"),
    "kubeconfig": (),
    "doctor --spec": (),
    "down": ("--yes",),
    "expire": ("--yes",),
    "unlock": ("--lock", "lab/1"),
    "reconcile status": (),
    "reconcile pause": (),
    "reconcile resume": (),
}
"""Verb -> what follows its input."""
OF_NO_INPUT = {"explain", "schema", "machines", "reconcile", "reconcile unit"}
"""Verbs that take no cluster and no file."""
_SEEN_LATER = {"a state that can't be made"}
"""What depends on this machine, which `validate` doesn't check."""
_NO_FORMAT = {
    "ssh", "compile", "bundle", "image", "burst agent", "init", "reconcile pause",
    "reconcile resume", "run", "logs", "cancel",
}  # fmt: skip


def broken(inputs: Iterator[tuple[str, str]] | None, folder: Path) -> list[str]:
    """Give bad inputs to verbs; return what is broken of whom.

    Args:
        inputs: pairs of input and verb; None: all of them.
        folder: an empty one.
    """
    found = []
    for number, (name, verb) in enumerate(inputs or every()):
        cluster = TortureCluster(folder / str(number))
        cluster.spec.unlink()
        if name in TEXTS:
            cluster.spec.write_bytes(TEXTS[name])
        else:
            PLACES[name](cluster.spec)
        words = (*verb.split(), str(cluster.spec), *VERBS[verb])
        form = () if verb in _NO_FORMAT else ("--format", "json")
        step = Step(run((*words, *form), cluster.folder), cluster, False, False, False)
        found += [
            f"{verb} of {name}: {invariant.name}: {how}"
            for invariant in INVARIANTS
            if invariant.name != "nothing double" and (how := invariant.broken(step))
        ]
        if step.ended.code == 0 and verb == "validate" and name not in _SEEN_LATER:
            found.append(f"validate of {name}: it is well")
    return found


def every() -> Iterator[tuple[str, str]]:
    """Yield every pair of input and verb."""
    return ((name, verb) for name in (*TEXTS, *PLACES) for verb in VERBS)
