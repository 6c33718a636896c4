"""A short run of the fuzz target on every change; `make fuzz` is the long one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .corpus import write_corpus

_TARGET = Path(__file__).with_name("fuzz_load.py")
_RUNS = 3_000


def test_no_input_makes_the_loader_fail(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    assert write_corpus(corpus)
    done = subprocess.run(
        [
            *(sys.executable, str(_TARGET)),
            *(f"-runs={_RUNS}", "-seed=1", "-max_len=4096", f"-artifact_prefix={tmp_path}/"),
            str(corpus),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    counted = re.search(r"Done (\d+) runs", done.stderr + done.stdout)
    assert counted is not None
    assert int(counted[1]) >= _RUNS
