"""Startup scripts of a blueprint: runners become hooks of the pools whose modules use them.

What a runner does is what modules/scripts/startup-script/templates/startup-script-custom.tftpl
says (github.com/GoogleCloudPlatform/cluster-toolkit, commit 1047080, 2026-06-25): files are put
where they belong, and in their order programs run as root, and playbooks on the node itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..draft import Draft
from ..scripts import NotCarriedError, Scripts
from ..source import Source
from .blueprint import Blueprint, Module

_MOUNTING = re.compile(r"\.(client_install|mount)_runner")
_MOUNTED = "storage of the spec is mounted by the nodes' role"
_OF_MODULE = "a runner of another module: software and storage of the spec"
_ELSEWHERE = "its file isn't here: get it, and hooks: {type: script, path}"
_UNKNOWN = re.compile(r"(?<!\\)\$\(([\w-]+)\.([\w.-]+)\)")
"""A variable or an output of a module that isn't filled in; after a backslash it is the shell's."""
_VALUE = "a variable in it has no value: --var NAME=VALUE"
_OWN_SCRIPTS = ("startup_script", "controller_startup_script", "login_startup_script")
_AROUND_JOBS = {"prolog_scripts": "prolog", "epilog_scripts": "epilog"}


def carry_scripts(blueprint: Blueprint, places: Mapping[str, str], draft: Draft) -> None:
    """Write the hooks.

    Args:
        blueprint: the blueprint.
        places: key of a nodeset, controller or login module -> its pool.
        draft: it is written into.
    """
    scripts = Scripts(draft, "cluster-toolkit")
    logins = [pool for pool, entry in draft.pools.items() if entry.get("role") == "login"]
    images = {each.key for each in blueprint.of("custom-image")}
    for module in blueprint.of("startup-script"):
        users = [each for each in blueprint.modules if module.key in each.uses]
        pools = dict.fromkeys(
            pool
            for user in users
            if user.key in places
            for pool in _pools(user, module.key, places[user.key], logins)
        )
        for_all = any(user.key in images for user in users)
        _runners(
            module.settings, [] if for_all else list(pools), scripts, used=bool(pools or for_all)
        )
    for module in blueprint.modules:
        if module.key in places:
            _of_module(module, places[module.key], logins, scripts)


def _pools(user: Module, key: str, pool: str, logins: list[str]) -> list[str]:
    """Return the pools whose nodes run the startup script that a module names."""
    named = [each for each in _OWN_SCRIPTS if f"$({key}." in user.settings.raw(each)]
    for_logins = [each.startswith("login_") for each in named]
    found = list(logins) if any(for_logins) else []
    return found if named and all(for_logins) else [*found, pool]


def leave_runners(blueprint: Blueprint, why: str) -> None:
    """List the runners of a blueprint whose nodes run no hooks."""
    for module in blueprint.of("startup-script"):
        for index, _ in enumerate(_listed(module.settings)):
            module.settings.leave(why, "runners", index)


def _listed(settings: Source) -> list[object]:
    found = settings.peek("runners")
    return found if isinstance(found, list) else []


def _runners(settings: Source, pools: Sequence[str], scripts: Scripts, *, used: bool) -> None:
    for index, runner in enumerate(_listed(settings)):
        if isinstance(runner, str):
            if _MOUNTING.search(runner):
                settings.leave(_MOUNTED, "runners", index, kind="replaced")
            else:
                settings.leave(_OF_MODULE, "runners", index)
        elif not used:
            settings.leave("no module of a pool uses it", "runners", index)
    for runner in settings.each("runners") if used else ():
        _runner(runner, pools, scripts)


def _runner(runner: Source, pools: Sequence[str], scripts: Scripts) -> None:
    name, kind = runner.raw("destination"), runner.raw("type")
    own = scripts.own_way(name)
    text = _shells(runner.raw("content"))
    if own:
        runner.leave(own, kind="replaced")
    elif not text:
        runner.leave(_ELSEWHERE)
    elif _UNKNOWN.search(runner.raw("content")):
        runner.leave(_VALUE, kind="unfinished")
    else:
        try:
            if kind == "data":
                scripts.file(name, text, pools)
            elif kind == "ansible-local":
                scripts.playbook(name, text, pools)
            else:
                scripts.shell(name, text, pools, arguments=runner.raw("args"))
        except NotCarriedError as error:
            runner.leave(str(error))
        else:
            runner.accept_as_one()


def _of_module(module: Module, pool: str, logins: list[str], scripts: Scripts) -> None:
    """Carry the scripts that are in the settings of a nodeset, controller or login module.

    `login_startup_script` of the controller's module is for the login nodes.
    """
    settings = module.settings
    for key in _OWN_SCRIPTS:
        text, pools = settings.raw(key), logins if key.startswith("login_") else [pool]
        if not text or _UNKNOWN.fullmatch(text):
            continue
        if _UNKNOWN.search(text):
            settings.leave(_VALUE, key, kind="unfinished")
        elif not pools:
            settings.leave("it has no login nodes", key, kind="replaced")
        else:
            scripts.shell(f"{key.partition('_')[0]}-startup", _shells(text), pools)
            settings.accept(key)
    for key, kind in _AROUND_JOBS.items():
        for script in settings.each(key):
            name, text = script.raw("filename"), script.raw("content")
            own = scripts.own_way(name)
            if own:
                script.leave(own, kind="replaced")
            elif text:
                scripts.shell(name, _shells(text), [], kind=kind)
                script.accept_as_one()
            else:
                script.leave("its file isn't here: get it, and hooks: {type: prolog, path}")


def _shells(text: str) -> str:
    r"""Return a text as the Toolkit writes it to a file: \$( is no variable of its own."""
    return text.replace("\\$(", "$(")
