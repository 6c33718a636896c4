"""Copies of checkpoints in a bucket that is mounted: moto's S3, seen as files by rclone (FUSE).

Like mount-s3 and gcsfuse without a cache a file there is written once, from its beginning. rclone
can rename, which mount-s3 can't: so renaming fails here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from tests.pulumi_double.moto_process import MotoProcess

from .test_job_copies import commit, names, newest, saved, verified, written

__all__ = ["saved"]  # a fixture

NEEDS = ("rclone", "fusermount3")
MISSING = [each for each in NEEDS if shutil.which(each) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING) or not os.access("/dev/fuse", os.W_OK),
    reason=f"needs {', '.join(MISSING) or '/dev/fuse'} (.ci/machine tests)",
)
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
RUNS = """\
import errno, os, runpy, sys
def refused(*_, **__):
    raise OSError(errno.EPERM, "a bucket renames nothing")
os.rename = os.replace = refused
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
OPTIONS = ["--vfs-cache-mode=off", "--streaming-upload-cutoff=64Mi"]
"""Nothing is cached, and up to so many bytes are one request."""
BIG = 48 << 20


class Bucket:
    """A bucket, and the folder that shows it."""

    def __init__(self, url: str, folder: Path) -> None:
        """Make the bucket and mount it."""
        names = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        self.client: Any = boto3.client("s3", "us-east-1", endpoint_url=url, verify=False, **names)
        self.client.create_bucket(Bucket="acme-runs")
        self.folder = folder / "runs"
        self.folder.mkdir()
        remote = f":s3,provider=Other,env_auth=true,endpoint='{url}':acme-runs"
        environment = {key: value for key, value in os.environ.items() if "CA_BUNDLE" not in key}
        with (folder / "rclone.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["rclone", "mount", remote, self.folder, *OPTIONS],
                env={**environment, **KEYS, "RCLONE_CONFIG": str(folder / "none.conf")},
                stdout=log,
                stderr=log,
            )
        while not self.folder.is_mount():
            assert self.process.poll() is None, (folder / "rclone.log").read_text()
            time.sleep(0.05)

    def objects(self) -> list[str]:
        """Return the keys of the bucket, as S3 lists them."""
        found = self.client.list_objects_v2(Bucket="acme-runs").get("Contents", [])
        return sorted(each["Key"] for each in found)

    def end(self) -> None:
        """Take the mount away."""
        subprocess.run(["fusermount3", "-u", "-z", self.folder], check=False)
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoProcess]:
    """Start an S3."""
    server = MotoProcess(tmp_path_factory.mktemp("moto"))
    yield server
    server.end()


@pytest.fixture
def bucket(moto: MotoProcess, tmp_path: Path) -> Iterator[Bucket]:
    """Mount an empty bucket."""
    made = Bucket(moto.url, tmp_path)
    for key in made.objects():
        made.client.delete_object(Bucket="acme-runs", Key=key)
    yield made
    made.end()


def send(saved: Path, copy: Path, keep: int = 2) -> subprocess.CompletedProcess[str]:
    words = [saved.parent / "job_launch/copies.py", "send", saved, copy, "--keep", str(keep)]
    return subprocess.run(
        [sys.executable, "-c", RUNS, *words], capture_output=True, text=True, check=False
    )


def test_a_bucket_has_the_newest_checkpoints_and_gives_them_back(
    saved: Path, bucket: Bucket
) -> None:
    copy = bucket.folder / "team/letters"
    for number in (1, 2, 3):
        written(saved, number)
        done = send(saved, copy)
        assert (done.returncode, done.stderr) == (0, "")

    files = [".metadata", "MANIFEST.json", "empty", "rank0/a.distcp"]
    keys = [f"team/letters/step-{number}/{file}" for number in (2, 3) for file in files]
    assert bucket.objects() == sorted(keys)

    for number in (1, 2, 3):
        shutil.rmtree(saved / f"step-{number}")
    found = newest(saved, copy)
    assert found.stdout == f"{saved}/step-3\n"
    assert verified(saved, saved / "step-3")


def test_an_upload_that_is_killed_is_torn_and_is_made_again(saved: Path, bucket: Bucket) -> None:
    copy = bucket.folder / "letters"
    written(saved, 1)
    send(saved, copy)
    (saved / "step-2").mkdir()
    (saved / "step-2/a").write_bytes(b"first")
    (saved / "step-2/weights").write_bytes(os.urandom(BIG))
    commit(saved, 2)
    started = subprocess.Popen(
        [sys.executable, saved.parent / "job_launch/copies.py", "send", saved, copy]
    )
    while "letters/step-2/a" not in bucket.objects():
        assert started.poll() is None
    started.kill()
    started.wait()
    assert "letters/step-2/MANIFEST.json" not in bucket.objects()

    elsewhere = saved.parent / "elsewhere"
    found = subprocess.run(
        [sys.executable, saved.parent / "job_launch/copies.py", "newest", elsewhere, copy],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == f"{elsewhere}/step-1\n"
    assert "step-2 is skipped: it was cut off\n" in found.stderr

    assert send(saved, copy).returncode == 0
    assert verified(saved, copy / "step-2")
    assert names(copy) == ["step-1", "step-2"]


def test_a_mount_that_is_gone_is_a_failure_with_a_line(saved: Path, bucket: Bucket) -> None:
    written(saved, 1)
    bucket.process.kill()
    bucket.process.wait()

    done = send(saved, bucket.folder / "letters")

    assert done.returncode == 1
    assert done.stderr.startswith(f"step-1 is not copied to {bucket.folder}/letters: [Errno 107] ")
    assert newest(saved, bucket.folder / "letters").stdout == f"{saved}/step-1\n"
