"""Reads genconf/config.yaml, and runs the checks that both variants share. A problem is a line `key: message`."""

import re
from pathlib import Path
from typing import Any

import yaml

ROLES = ("master", "agent", "public_agent")


class Refused(Exception):
    """The configuration is invalid. `problems` contains everything that is wrong with it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Refused([f"config.yaml: cannot be read: {getattr(error, 'strerror', None) or error}"]) from error
    except yaml.YAMLError as error:
        raise Refused([f"config.yaml: {' '.join(str(error).split())}"]) from error
    if not isinstance(raw, dict):
        raise Refused(["config.yaml: must be a mapping"])
    return raw


def problems(raw: dict[str, Any], folder: Path) -> list[str]:
    found = []
    if not is_line(raw.get("cluster_name")):
        found.append("cluster_name: must be a line of text")
    if not re.fullmatch(r"https?://[^\s'\"\\]+", str(raw.get("bootstrap_url", ""))):
        found.append("bootstrap_url: must be an HTTP URL that all nodes can reach")
    for key in ("master_discovery", "exhibitor_storage_backend"):
        if raw.get(key) != "static":
            found.append(f"{key}: must be static")
    return found + detector_problems(raw, folder) + fault_problems(raw.get("fault_injection"))


def detector_problems(raw: dict[str, Any], folder: Path) -> list[str]:
    if "ip_detect_public_filename" not in raw:
        return []
    path = inside(folder, raw["ip_detect_public_filename"])
    if path is None or not path.is_file():
        return [f"ip_detect_public_filename: no such file inside genconf/: {raw['ip_detect_public_filename']}"]
    return []


def fault_problems(fault: Any) -> list[str]:
    """`fault_injection` is for tests: see the top of `build`."""
    if fault is None or (
        isinstance(fault, dict) and fault.get("role") in ROLES and is_line(fault.get("message")) and len(fault) == 2
    ):
        return []
    return [f"fault_injection: must hold a role ({', '.join(ROLES)}) and a message"]


def is_line(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def inside(folder: Path, value: Any) -> Path | None:
    """Resolves a configured path, which is relative to genconf/, with or without that prefix."""
    if not isinstance(value, str) or value == "":
        return None
    parts = Path(value).parts
    path = Path(*parts[1:]) if parts[0] == folder.name else Path(value)
    if path.is_absolute() or ".." in path.parts:
        return None
    return folder / path
