"""Asks a DC/OS release's own generator what it thinks of a configuration: `python3 generate.py CHECKOUT CONFIGURATION`.

Runs in a folder with `genconf/ip-detect`. Prints one JSON object: `problems` (by key), and `values`, what some keys came to. Modules that
this Python lacks, or no longer has, are replaced by empty ones, and named in `adapted`: the generator uses them for other things.
"""

import collections
import collections.abc
import importlib.abc
import importlib.machinery
import json
import os
import sys
from unittest.mock import MagicMock

# What only other parts of the generator's project use.
REPLACEABLE = {"aiohttp", "analytics", "azure", "boto3", "botocore", "checksumdir", "coloredlogs", "docopt", "passlib", "pkg_resources", "py",
               "requests", "retrying", "schema", "teamcity"}
SHOWN = ("check_time", "exhibitor_tls_enabled", "num_masters", "master_list", "resolvers", "ip_detect_public_filename", "cluster_name")


class Replacer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: finds an empty module where there is no real one."""

    def __init__(self) -> None:
        self.replaced: set[str] = set()

    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in REPLACEABLE or importlib.machinery.PathFinder.find_spec(top) is not None:
            return None
        self.replaced.add(top)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module) -> None:
        pass


def adapt() -> list[str]:
    """What had to be adapted so far; grows while modules are loaded."""
    adapted = []
    # Until Python 3.9 these stood there as well.
    for name in ("Iterable", "Mapping", "MutableMapping", "Sequence", "Callable"):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
            adapted.append(f"collections.{name}")
    return adapted


def main(checkout: str, configuration: str) -> None:
    sys.path.insert(0, checkout)
    os.environ.update({"BOOTSTRAP_ID": "0" * 40, "BOOTSTRAP_VARIANT": "", "DCOS_IMAGE_COMMIT": "0" * 40})
    adapted = adapt()
    replacer = Replacer()
    sys.meta_path.append(replacer)
    import yaml

    import gen
    import gen.build_deploy.bash as installer
    import gen.internals

    with open(configuration, encoding="utf-8") as file:
        given = gen.stringify_configuration(yaml.safe_load(file))
    source = installer.onprem_source
    if hasattr(installer, "dcos_installer"):
        installer.dcos_installer.config_util.installer_latest_complete_artifact = lambda *_: {"packages": [], "bootstrap": "0" * 40}
    sources, targets, _ = gen.get_dcosconfig_source_target_and_templates(given, [], [source])
    resolver = gen.internals.resolve_configuration(sources, targets)
    status = resolver.status_dict
    problems = {key: error["message"] for key, error in status.get("errors", {}).items()}
    problems.update({key: "is not set" for key in status.get("unset", [])})
    values = {name: argument.value for name, argument in resolver.arguments.items()} if isinstance(resolver.arguments, dict) else {}
    print(json.dumps({"problems": problems, "values": {key: str(getattr(values.get(key), "value", values.get(key))) for key in SHOWN}, "adapted": adapted + sorted(replacer.replaced)}))


main(sys.argv[1], sys.argv[2])
