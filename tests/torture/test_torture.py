"""A fixed part of what `make torture` plays, in every run of the tests.

It plays in a process of its own: one that has used the state's store before can't be forked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from gcluster.cli.commands import VERBS as COMMANDS

from . import faults
from .bad_inputs import OF_NO_INPUT, PLACES, TEXTS, VERBS

ROOT = Path(__file__).parents[2]
RUNS = 24
SEED = 20_000
INPUTS = 60


def _apart(code: str) -> Any:
    """Run code in an interpreter of its own; return what it prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


_PLAY = f"""
import json
from collections import Counter
from tests.torture.__main__ import play
broken, happened = [], Counter()
for seed in range({SEED}, {SEED + RUNS}):
    found, counted = play(seed)
    broken += [found] if found else []
    happened += counted
print(json.dumps([broken, happened]))
"""


def test_whatever_two_faults_occur_the_messages_lead_back() -> None:
    broken, happened = _apart(_PLAY)
    assert broken == []
    assert happened["commands"] > RUNS * 6
    assert happened["commands killed"] > 0


def test_every_object_of_a_state_is_damaged_in_every_way_by_some_fault() -> None:
    names = {fault.name for fault in faults.FAULTS}
    assert len(names) == len(faults.FAULTS)
    for prefix in faults.PREFIXES:
        for way in faults.WAYS:
            assert f"{prefix.rstrip('/')} {way}" in names


_INPUTS = f"""
import json, random
from tests.torture.__main__ import give
from tests.torture.bad_inputs import every
some = random.Random({SEED}).sample(list(every()), {INPUTS})
print(json.dumps([len({{verb for _, verb in some}}), give(some)]))
"""


def test_forty_bad_inputs_end_every_verb_with_a_message() -> None:
    assert len(TEXTS) + len(PLACES) >= 40
    verbs, broken = _apart(_INPUTS)
    assert broken == []
    assert verbs > 15


def test_every_verb_that_takes_a_cluster_or_a_file_is_given_them() -> None:
    found = set(OF_NO_INPUT) & {"reconcile"}  # a group that is a verb itself
    for verb in COMMANDS:
        module = import_module(verb.module, "gcluster.cli")
        group = getattr(module, "app", None)
        if hasattr(module, "command") or group is None:
            found.add(verb.name)
            continue
        for command in group.registered_commands:
            name = command.name or command.callback.__name__
            found.add(f"{verb.name} {name}")
    assert {verb.partition(" --")[0] for verb in VERBS} | OF_NO_INPUT == found


_NOTICES = f"""
import json, tempfile
from pathlib import Path
from gcluster.lifecycle.state import store
from tests.torture import faults
from tests.torture.scenario import BrokenError, Scenario
fault = next(fault for fault in faults.FAULTS if fault.name == "secrets edited")
found = []
with tempfile.TemporaryDirectory() as folder:
    for name, look in (("looked at", store.without_hash), ("not", lambda _, stored: stored)):
        store.without_hash = look
        try:
            Scenario({SEED}, Path(folder) / name, (fault,)).play()
            found.append(False)
        except BrokenError:
            found.append(True)
print(json.dumps(found))
"""


def test_the_harness_notices_when_hashes_are_not_checked() -> None:
    assert _apart(_NOTICES) == [False, True]


_ENDS = """
import json, os, signal, tempfile
from pathlib import Path
from tests.torture.process import run
with tempfile.TemporaryDirectory() as folder:
    kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps([run(("--version",), Path(folder), hurt).code for hurt in ((kill,), ())]))
"""


def test_a_command_that_is_killed_is_seen_as_such() -> None:
    assert _apart(_ENDS) == [None, 0]
