"""Types are learnt by one thread at a time: one module alone calls msgspec by type."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN = re.compile(
    r"msgspec\.(json|yaml|toml|msgpack)\.decode\([^\n]*type=|msgspec\.convert\("
    r"|from msgspec import [^\n]*convert"
)
RACE = """
import sys, threading, types
from gcluster.schemas.structure.decoding import decode_json
sys.setswitchinterval(1e-6)
text = "import msgspec\\nfrom typing import Optional\\n" + "".join(
    f"class A{i}(msgspec.Struct):\\n    x: Optional[{f'A{i - 1}' if i else 'int'}] = None\\n"
    for i in range(40)
)
for turn in range(10):
    module = types.ModuleType(f"m{turn}")
    sys.modules[module.__name__] = module
    exec(text, module.__dict__)
    barrier, found = threading.Barrier(6), []
    def read():
        barrier.wait()
        found.append(decode_json(b'{"x": null}', module.A39))
    threads = [threading.Thread(target=read) for _ in range(6)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert len(found) == 6
print("survived")
"""


def test_no_other_module_decodes_by_type_itself() -> None:
    folders = ("schemas", "inventory", "stacks", "lifecycle", "cli")
    found = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if OWN.search(path.read_text())
    }
    assert found == {"schemas/structure/decoding.py"}


def test_threads_that_meet_a_type_together_all_read_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RACE], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr
