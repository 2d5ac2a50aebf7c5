"""Generates slurm.conf, the same for all nodes. It contains only addresses, because nodes may have no DNS."""

from collections.abc import Sequence
from typing import NamedTuple


class Member(NamedTuple):
    name: str
    role: str
    address: str


# @CONTROLLER@: slurmctld starts only with its machine's hostname, which only that machine knows, so its installer inserts it. On other nodes any
# name will do, because the address counts. So the files differ, which needs NO_CONF_HASH.
# EnforcePartLimits: a job that no set of nodes can ever run is rejected instead of queued for ever.
# PropagateResourceLimits: the limits of the caller's shell may not be possible in a container.
COMMON = """\
ClusterName=cluster
SlurmctldHost=@CONTROLLER@({controller})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
MailProg=/bin/true
DebugFlags=NO_CONF_HASH
EnforcePartLimits=ALL
PropagateResourceLimits=NONE
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=5
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
"""


def slurm_conf(members: Sequence[Member]) -> str:
    controller = next(member for member in members if member.role == "master")
    workers = [member for member in members if member.role != "master"]
    lines = [f"NodeName={worker.name} NodeAddr={worker.address} CPUs=1 State=UNKNOWN" for worker in workers]
    # slurmctld doesn't start without any node. A node in the state FUTURE is never shown.
    lines = lines or ["NodeName=placeholder State=FUTURE"]
    lines.append(partition("agents", workers, "agent", "Default=YES"))
    lines.append(partition("public", workers, "public_agent", "Default=NO"))
    return COMMON.format(controller=controller.address) + "\n".join(lines) + "\n"


def partition(name: str, workers: Sequence[Member], role: str, default: str) -> str:
    nodes = ",".join(worker.name for worker in workers if worker.role == role)
    return f"PartitionName={name} {default} State=UP MaxTime=INFINITE" + (f" Nodes={nodes}" if nodes else "")
