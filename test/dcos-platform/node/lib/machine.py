"""Checks whether the platform's services can run on this machine, like the real ones."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

SETTINGS = json.loads(Path("/opt/mesosphere/etc/settings.json").read_text(encoding="utf-8"))
TIME_ERROR = 5


def refuse(reason: str) -> None:
    Path("/run/dcos-refused").write_text(reason, encoding="utf-8")
    sys.exit(reason)


def check_clock() -> None:
    """The kernel must report that its clock is synchronized."""
    if SETTINGS["check_time"] and ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512)) == TIME_ERROR:
        refuse("the clock is not synchronized")


def check_control_groups() -> None:
    """Mesos supports only version 1. Inside a container it must be told its own group."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", "/sys/fs/cgroup"], capture_output=True, text=True, check=True).stdout
    if kind.strip() == "cgroup2fs":
        refuse("Mesos cannot isolate: there are no control groups of version 1")
    if subprocess.run(["systemd-detect-virt", "--container", "--quiet"]).returncode == 0:
        check_container()


def check_container() -> None:
    lines = [line.split(":", 2) for line in Path("/proc/1/cgroup").read_text(encoding="utf-8").splitlines()]
    own = next((path for _, names, path in lines if "memory" in names.split(",")), "/").removesuffix("/init.scope").strip("/")
    common = Path("/var/lib/dcos/mesos-slave-common")
    text = common.read_text(encoding="utf-8") if common.exists() else ""
    variables = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if variables.get("MESOS_SYSTEMD_ENABLE_SUPPORT") != "false":
        refuse("Mesos cannot reach the host's systemd from inside a container")
    if not variables.get("MESOS_CGROUPS_ROOT", "").startswith(own):
        refuse("Mesos' control group is outside the container")
    pid = subprocess.run(["pidof", "dockerd"], capture_output=True, text=True).stdout.split()
    words = Path(f"/proc/{pid[0]}/cmdline").read_text(encoding="utf-8").split("\0") if pid else []
    parent = words[words.index("--cgroup-parent") + 1] if "--cgroup-parent" in words else ""
    if not parent.strip("/").startswith(own) or not parent:
        refuse("Docker's control group is outside the container")


def check(role: str) -> None:
    Path("/run/dcos-refused").unlink(missing_ok=True)
    check_clock()
    if role != "master":
        check_control_groups()
    elif SETTINGS["needs_dig"] and not any(os.access(f"{folder}/dig", os.X_OK) for folder in ("/usr/bin", "/bin")):
        refuse("there is no dig, which the LDAP synchronization calls")
