"""The text of slurm.conf: one for all nodes, with nothing but addresses in it, since nodes may have no DNS."""

from collections.abc import Sequence
from typing import NamedTuple


class Member(NamedTuple):
    name: str
    role: str
    address: str


# @CONTROLLER@: slurmctld starts only under the hostname of its machine, which that machine alone knows. The node's installer
# puts it there; elsewhere it is a mere name, and the address counts. That makes the files differ: NO_CONF_HASH.
# EnforcePartLimits: a job that no set of nodes can ever run is refused, not queued for ever.
# PropagateResourceLimits: the limits of the caller's shell need not be possible in a container.
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
    # slurmctld refuses to start without any node; one of the state FUTURE is shown nowhere.
    lines = lines or ["NodeName=placeholder State=FUTURE"]
    lines.append(partition("agents", workers, "agent", "Default=YES"))
    lines.append(partition("public", workers, "public_agent", "Default=NO"))
    return COMMON.format(controller=controller.address) + "\n".join(lines) + "\n"


def partition(name: str, workers: Sequence[Member], role: str, default: str) -> str:
    nodes = ",".join(worker.name for worker in workers if worker.role == role)
    return f"PartitionName={name} {default} State=UP MaxTime=INFINITE" + (f" Nodes={nodes}" if nodes else "")
