"""Generates CI pipelines for a repository of specs: checks, plans, gated applies, nightly drift."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

import msgspec

import gcluster

from ....schemas.fleet.folder import load_folder
from ...cluster.outcome import Exit, failure
from .git import Repository

Forge: TypeAlias = Literal["github", "gitlab", "flux"]
_TEMPLATES = Path(__file__).parent / "templates"
_LOGINS = ("aws", "gcp", "azure")
"""Clouds that take a pipeline's own token (OIDC) for a login; others need rights of the runner."""
_MARK = re.compile(r"@([A-Z_]+)(?::([A-Z]+))?@")
_FOLDER = re.compile(r"^[\w.-]+(/[\w.-]+)*$")
_SCRIPT = "ci/gcluster-pipeline"
_INCLUDE = "include: [{local: .gitlab/gcluster.yml}]\n"


class Pipelines(msgspec.Struct, frozen=True, kw_only=True):
    """The requested options."""

    forge: Forge
    specs: str = "specs"
    """Folder of the specs, from the top of the repository."""
    branch: str = "main"
    repo: str = ""
    """URL of the repository; only Flux needs it."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, and what is left to a person."""

    files: tuple[str, ...]
    clouds: tuple[str, ...]
    """Clouds of the specs that the pipelines log in to."""
    stateless: tuple[str, ...]
    """Specs without a state that pipelines could share."""
    by_hand: tuple[str, ...]
    """What is to be done at the forge, in order."""


def write_pipelines(top: Path, wanted: Pipelines) -> Written:
    """Write the files of one kind of pipeline below `top`; all of them, or none.

    Raises:
        LifecycleError: GC1138, a folder or name can't be used; GC945, a file is there already;
            GC1130, the repository's URL is not taken.
    """
    _refuse(top, wanted)
    folder = load_folder(top / wanted.specs) if (top / wanted.specs).is_dir() else None
    specs = [each for each in (folder.specs if folder else ()) if each.spec is not None]
    sites = [site for each in specs if each.spec for site in each.spec.sites.values()]
    providers = {site.provider for site in sites if site.is_cloud}
    clouds = tuple(name for name in _LOGINS if name in providers)
    files = _files(wanted, clouds, sorted(providers))
    there = [name for name in files if (top / name).exists()]
    if wanted.forge == "gitlab" and ".gitlab-ci.yml" in there:
        there.remove(".gitlab-ci.yml")
        del files[".gitlab-ci.yml"]
    if there:
        raise failure(
            "GC945",
            f"{', '.join(there)} {'exists' if len(there) == 1 else 'exist'} already; "
            "nothing was written",
            hint="move it away to have it written again",
        )
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    (top / _SCRIPT).chmod(0o755)
    return Written(
        files=tuple(files),
        clouds=clouds,
        stateless=tuple(
            str(Path(each.file).relative_to(top))
            for each in specs
            if each.spec is not None and each.spec.state is None
        ),
        by_hand=tuple(_by_hand(wanted, clouds, included=".gitlab-ci.yml" in files)),
    )


def _files(wanted: Pipelines, clouds: Iterable[str], providers: Iterable[str]) -> dict[str, str]:
    version = gcluster.__version__
    extras = ",".join(providers)
    words = {
        "SPECS": wanted.specs,
        "BRANCH": wanted.branch,
        "VERSION": version,
        "REQUIREMENT": f"gcluster[{extras}]=={version}" if extras else f"gcluster=={version}",
        "REPO": wanted.repo,
        "REPO_URL": _as_url(wanted.repo),
        "IMAGE": f"registry.example.org/gcluster-reconcile:{version}",
    }
    found = {_SCRIPT: _filled(_read("gcluster-pipeline"), words, {})}
    may = "      id-token: write # to log in to the clouds, without a secret\n" if clouds else ""
    blocks = {"TOKENS": "", "LOGIN": "", "ID_TOKEN": may}
    if wanted.forge == "github":
        blocks["LOGIN"] = "".join(_read(f"github/login-{cloud}.yml.in") for cloud in clouds)
        for name in ("plan", "apply", "watch"):
            text = _filled(_read(f"github/{name}.yml.in"), words, blocks)
            found[f".github/workflows/gcluster-{name}.yml"] = text
    elif wanted.forge == "gitlab":
        blocks["LOGIN"] = "".join(_read(f"gitlab/login-{cloud}.yml.in") for cloud in clouds)
        tokens = "".join(_read(f"gitlab/token-{cloud}.yml.in") for cloud in clouds)
        blocks["TOKENS"] = f"  id_tokens:\n{tokens}" if tokens else ""
        found[".gitlab/gcluster.yml"] = _filled(_read("gitlab/gitlab-ci.yml.in"), words, blocks)
        found[".gitlab-ci.yml"] = _INCLUDE
    else:
        text = _filled(_read("flux/gcluster.yaml.in"), words, {})
        for word, schedule in (("drift", "17 2 * * *"), ("smoke", "43 4 * * 0")):
            look = {**words, "WORD": word, "SCHEDULE": schedule}
            text += _filled(_read("flux/look.yaml.in"), look, {})
        found["flux/gcluster/gcluster.yaml"] = text
        found["flux/sync.yaml"] = _filled(_read("flux/sync.yaml.in"), words, {})
    return found


def _filled(text: str, words: Mapping[str, str], blocks: Mapping[str, str]) -> str:
    """Replace @WORD@ by text, and a whole line of @BLOCK@ or @BLOCK:RIGHT@ by a block."""

    def block(found: re.Match[str]) -> str:
        return blocks[found[1]].replace("@RIGHT@", found[2] or "")

    names = "|".join(blocks)
    if names:
        text = re.sub(rf"^@({names})(?::([A-Z]+))?@\n", block, text, flags=re.MULTILINE)
    return _MARK.sub(lambda found: words[found[1]], text)


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _as_url(repo: str) -> str:
    """Write user@host:path as the URL that Flux takes."""
    user_host, colon, path = repo.partition(":")
    return f"ssh://{user_host}/{path}" if colon and "://" not in repo else repo


def _refuse(top: Path, wanted: Pipelines) -> None:
    if not (top / ".git").exists():
        raise failure(
            "GC1138",
            f"{top} is not the top folder of a git repository",
            hint="git init, or give that folder: gcluster init --ci github FOLDER",
            exit_code=Exit.USAGE,
        )
    parts = PurePosixPath(wanted.specs).parts
    if not _FOLDER.match(wanted.specs) or ".." in parts:
        raise failure(
            "GC1138",
            f'"{wanted.specs}" is no folder of the repository',
            hint="--specs specs",
            exit_code=Exit.USAGE,
        )
    if wanted.forge == "flux" and not wanted.repo:
        raise failure(
            "GC1138",
            "Flux needs to know the repository",
            hint="--repo https://HOST/PATH or git@HOST:PATH",
            exit_code=Exit.USAGE,
        )
    Repository(wanted.repo or "/", wanted.branch, top)  # refuses what is no URL or branch


def _by_hand(wanted: Pipelines, clouds: Iterable[str], *, included: bool) -> Iterable[str]:
    right = {"aws": "ROLE", "gcp": "ACCOUNT", "azure": "CLIENT"}
    names = [f"GCLUSTER_{c.upper()}_{r}_{right[c]}" for c in clouds for r in ("PLAN", "APPLY")]
    if wanted.forge == "github":
        yield 'make the environment "gcluster", for the branch alone, with reviewers: the gate'
        yield 'make the environment "gcluster-unattended", for the branch alone'
        yield "store the secret GCLUSTER_AGE_KEY, and name it in specs: secrets: {key: env:...}"
    elif wanted.forge == "gitlab":
        if not included:
            yield f"add to .gitlab-ci.yml: {_INCLUDE.strip()}"
        yield 'protect the environment "gcluster": who may deploy there is the gate'
        yield "store GCLUSTER_AGE_KEY, masked (the file says who can read it); make two schedules"
    else:
        yield "build the image (gcluster reconcile unit --container) and write its name in"
        yield "make the secret gcluster; then: kubectl apply -f flux/sync.yaml"
        yield "checks on pull requests are the forge's: gcluster init --ci github or gitlab"
    if names and wanted.forge != "flux":
        yield f"set the variables {', '.join(names)} and the clouds' regions, as the files say"
        yield "rights to plan only read; rights to apply are for the branch and its environment"
