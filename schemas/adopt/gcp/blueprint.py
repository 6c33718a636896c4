"""A blueprint of the Cluster Toolkit as plain modules: variables filled in, each with its kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..draft import Draft, NothingToAdopt
from ..source import Source

SITE = "gcp"
_VARIABLE = re.compile(r"\$\(vars\.([\w.]+)\)|\(\(\s*var\.([\w.]+)\s*\)\)")
_MODULE = re.compile(r"\$\(([\w-]+)\.[\w.-]+\)")
_VERSION = re.compile(r"-v\d+-")


class Module(msgspec.Struct, frozen=True):
    """A module of a blueprint."""

    key: str
    kind: str
    """Without its path, revision and generation: schedmd-slurm-gcp-nodeset."""
    settings: Source
    uses: tuple[str, ...]
    """Modules that it names, in `use` or in a setting."""


class Blueprint(msgspec.Struct, frozen=True):
    """All of it."""

    name: str
    variables: Mapping[str, Any]
    modules: tuple[Module, ...]

    def of(self, *kinds: str) -> list[Module]:
        """Return the modules of some kinds, in the blueprint's order."""
        return [module for module in self.modules if module.kind in kinds]

    def users(self, key: str) -> list[str]:
        """Return the modules that name one."""
        return [module.key for module in self.modules if key in module.uses]


def read_blueprint(data: Any, given: Mapping[str, Any]) -> Blueprint:
    """Read one.

    Args:
        data: the blueprint.
        given: variables of a deployment file, over those of the blueprint.

    Raises:
        NothingToAdopt: it has no deployment groups.
    """
    if not isinstance(data, dict) or not isinstance(data.get("deployment_groups"), list):
        raise NothingToAdopt("it has no deployment_groups: is it a blueprint?")
    own = data.get("vars")
    said = {key: value for key, value in given.items() if value is not None}
    variables = {**(own if isinstance(own, dict) else {}), **said}
    modules = []
    for group in Source(data).each("deployment_groups"):
        for each in group.each("modules"):
            key, settings = each.text("id"), each.take("settings")
            settings = settings if isinstance(settings, dict) else {}
            named = each.take("use")
            uses = [str(one) for one in named] if isinstance(named, list) else []
            uses += _MODULE.findall(str(settings))
            modules.append(
                Module(
                    key, _kind(each.text("source")),
                    Source(_filled(settings, variables)), tuple(dict.fromkeys(uses)),
                )
            )  # fmt: skip
    name = variables.get("deployment_name") or data.get("blueprint_name") or "cluster"
    return Blueprint(str(name), variables, tuple(modules))


def site_of(blueprint: Blueprint, draft: Draft) -> dict[str, Any]:
    """Begin the site. Raises NothingToAdopt: its project or region is not specified."""
    variables = blueprint.variables
    missing = [key for key in ("project_id", "region") if not variables.get(key)]
    if missing:
        raise NothingToAdopt(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not specified: give "
            "the deployment file too, or --var KEY=VALUE"
        )
    site: dict[str, Any] = {
        "provider": "gcp", "project": str(variables["project_id"]), "region": variables["region"],
    }  # fmt: skip
    if variables.get("zone"):
        site["zone"] = variables["zone"]
    draft.sites[SITE] = site
    return site


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """Put the variables' values in, as deep as they refer to each other; unknown ones stay."""
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    if not isinstance(value, str):
        return value
    for _ in range(8):
        whole = _VARIABLE.fullmatch(value)
        if whole is not None:
            found = _looked_up(variables, whole[1] or whole[2])
            if found is None or not isinstance(found, str):
                return value if found is None else _filled(found, variables)
            value = found
            continue
        written = _VARIABLE.sub(lambda m: str(_looked_up(variables, m[1] or m[2]) or m[0]), value)
        if written == value:
            break
        value = written
    return value


def _looked_up(variables: Mapping[str, Any], path: str) -> Any:
    found: Any = variables
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _kind(source: str) -> str:
    """Return a module's name without its path, revision and generation."""
    return _VERSION.sub("-", f"{source.partition('?')[0].rstrip('/').rpartition('/')[2]}-").rstrip(
        "-"
    )


def named(items: Iterable[str]) -> dict[str, str]:
    """Read KEY=VALUE. Raises ValueError: one has no =."""
    return dict(item.split("=", 1) for item in items)
