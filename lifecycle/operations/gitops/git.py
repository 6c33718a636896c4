"""One branch of one repository, read with the git command: never written to, never trusted to run.

Nothing of the repository is run: no hooks, no helpers of its own; links become plain files, and
only authenticated transports are used. Credentials are left to git (a credential helper, an SSH
key): a URL that holds one is refused, since it would appear in arguments and logs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ...cluster.outcome import Exit, failure

_SCP_LIKE = re.compile(r"^(?:[\w.-]+@)?[\w.-]+:(?!//|:)[^\s]+$")
"""user@host:path, as git takes it for SSH."""
_NEAR = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that need no encryption on the way to."""
_BRANCH = re.compile(r"^(?![-./])(?!.*(\.\.|//|@\{|\.lock$|[./]$))[\w./+@-]+$")
"""A stricter form of git-check-ref-format(1)."""
_REF = "refs/gcluster/followed"
_LIMIT_S = 300
_SAFE = (
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "protocol.allow=never",
    *(f"protocol.{kind}.allow=always" for kind in ("https", "http", "ssh", "file")),
    "advice.detachedHead=false",
)


class Head(NamedTuple):
    """The commit of a branch."""

    commit: str
    """Full hash."""
    title: str
    """First line of its message."""


class Repository:
    """A local copy of one branch, in a folder of its own."""

    def __init__(self, url: str, branch: str, folder: Path) -> None:
        """Hold the parts; nothing is fetched.

        Raises:
            LifecycleError: a URL or branch that isn't taken (GC1130, exit code USAGE).
        """
        _refuse_url(url)
        if not _BRANCH.match(branch):
            raise _unfit(f'"{branch}" is no name of a branch', "--branch main")
        self._url = url
        self._branch = branch
        self._mirror = folder / "mirror.git"
        self._tree = folder / "tree"

    def fetch(self) -> Head:
        """Fetch the branch and return its commit.

        Raises:
            LifecycleError: git failed (GC1100), with its message.
        """
        if not (self._mirror / "HEAD").exists():
            self._git("init", "--quiet", "--bare", str(self._mirror), at_mirror=False)
        self._git(
            "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--force",
            "--end-of-options", self._url, f"refs/heads/{self._branch}:{_REF}",
        )  # fmt: skip
        commit, _, title = self._git("log", "-1", "--format=%H %s", _REF).strip().partition(" ")
        return Head(commit, title)

    def tree(self, commit: str) -> Path:
        """Return a folder that holds the files of a commit, and nothing else.

        Raises:
            LifecycleError: git can't (GC1100).
        """
        marker = self._tree.with_suffix(".commit")
        if self._tree.is_dir() and marker.is_file() and marker.read_text() == commit:
            return self._tree
        marker.unlink(missing_ok=True)
        shutil.rmtree(self._tree, ignore_errors=True)
        self._tree.mkdir(parents=True, mode=0o700)
        index = self._mirror / "gcluster.index"
        index.unlink(missing_ok=True)
        self._git("read-tree", commit, index=index)
        self._git("checkout-index", "--all", "--force", "--quiet", tree=self._tree, index=index)
        marker.write_text(commit)
        return self._tree

    def _git(
        self, *arguments: str, at_mirror: bool = True, tree: Path | None = None,
        index: Path | None = None,
    ) -> str:  # fmt: skip
        argv = ["git", *(word for each in _SAFE for word in ("-c", each))]
        argv += [f"--git-dir={self._mirror}"] * at_mirror
        argv += [f"--work-tree={tree}"] if tree is not None else []
        # git's own variables could point it elsewhere; there is no terminal for prompts.
        kept = {k: v for k, v in os.environ.items() if k not in _MISLEADING}
        env = kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        env.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes")
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
        try:
            done = subprocess.run(
                [*argv, *arguments],
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except FileNotFoundError as error:
            raise failure("GC1100", "git is not installed", hint="apt-get install git") from error
        except subprocess.TimeoutExpired as error:
            raise self._unread(f"no answer within {_LIMIT_S} s") from error
        if done.returncode != 0:
            raise self._unread(done.stderr.decode(errors="backslashreplace").strip())
        return done.stdout.decode(errors="backslashreplace")

    def _unread(self, stderr: str) -> Exception:
        return failure(
            "GC1100",
            f"branch {self._branch} of {self._url} can't be read",
            detail=stderr,
            hint="git fetch as the same user fails alike; clusters stay as they are meanwhile",
        )


_MISLEADING = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}
)


def _refuse_url(url: str) -> None:
    """Take https, ssh, a path and, on this machine alone, http."""
    if url.startswith("-") or any(c.isspace() or not c.isprintable() for c in url):
        raise _unfit("that is no URL of a repository", "https://HOST/PATH or git@HOST:PATH")
    if url.startswith("/") or (_SCP_LIKE.match(url) and "://" not in url):
        return
    try:
        parts = urlsplit(url)
        host, password, user = parts.hostname, parts.password, parts.username
    except ValueError:
        raise _unfit("that is no URL of a repository", "https://HOST/PATH") from None
    if password is not None or (user is not None and parts.scheme != "ssh"):
        raise _unfit(
            "the repository's URL holds a credential, which would appear in arguments and logs",
            "leave it out, and give it to git's credential helper: git help credentials",
        )
    if parts.scheme in {"https", "ssh", "file"} or (parts.scheme == "http" and host in _NEAR):
        return
    raise _unfit(
        f'"{parts.scheme or url}" is no authenticated way to a repository',
        "https://HOST/PATH, ssh://git@HOST/PATH, git@HOST:PATH or a path",
    )


def _unfit(summary: str, hint: str) -> Exception:
    return failure("GC1130", summary, hint=hint, exit_code=Exit.USAGE)
