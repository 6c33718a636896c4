"""At a node's start GPFS is started, and mounts what isn't mounted; its commands are doubles."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.shell_double import write_double

PROGRAM = Path(__file__).parents[2] / "roles/gpfs_client/files/libexec/gpfs-mount.sh"
STATE = """echo mmgetstate::HEADER:version:reserved:reserved:nodeName:nodeNumber:state:quorum:
[ -e {folder}/started ] && now=active || now=down
echo "mmgetstate::0:1:::node01:9:$now:2:\""""


def test_what_is_listed_is_mounted_once_gpfs_is_active(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(
        f"# head\nfs1 {tmp_path}/one noatime,ro\nfs2 {tmp_path}/two\nfs3 {tmp_path}/three \n"
    )
    for name, script in {
        "mmgetstate": STATE.format(folder=tmp_path),
        "mmstartup": f"touch {tmp_path}/started",
        "findmnt": f'[ "$2" = {tmp_path}/two ]',
        "mmmount": f'cat; echo "$*" >>{tmp_path}/asked',
        "sleep": "true",
    }.items():
        write_double(tmp_path / name, script)
    script = PROGRAM.read_text().replace("/etc/gcluster/gpfs-mounts", str(tmp_path / "mounts"))

    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script], env={"PATH": path}, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    requested = (tmp_path / "asked").read_text().splitlines()
    assert requested == [f"fs1 {tmp_path}/one -o noatime,ro", f"fs3 {tmp_path}/three"]
    assert (tmp_path / "three").is_dir()
