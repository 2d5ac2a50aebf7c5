"""Queries Slurm for the cluster's state, through its command-line programs."""

import subprocess
from collections.abc import Sequence
from typing import TypedDict

ANSWER_SECONDS = 15
# The states (without their flags) of a node that doesn't count as part of the cluster.
ABSENT_STATES = ("unknown", "down", "fail", "failing", "future", "inval")


class Node(TypedDict):
    name: str
    address: str
    partition: str
    state: str
    registered: bool


class Job(TypedDict):
    id: str
    state: str
    user: str
    nodes: str
    elapsed: str
    name: str


class Unavailable(Exception):
    """The controller doesn't answer."""


def controller_answers() -> bool:
    try:
        return subprocess.run(["scontrol", "ping"], capture_output=True, timeout=ANSWER_SECONDS).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def nodes() -> list[Node]:
    """Returns all agents and public agents, including those that never registered."""
    found = []
    for name, address, partition, state in rows(["sinfo", "--Node"], ("%N", "%o", "%R", "%T")):
        found.append(
            Node(name=name, address=address, partition=partition, state=state, registered=is_registered(state))
        )
    return found


def queue() -> list[Job]:
    """Returns pending and running jobs, in Slurm's order of priority."""
    # A job's name comes last, because its owner chose it and it may contain the separator.
    found = rows(["squeue"], ("%i", "%T", "%u", "%N", "%M", "%j"))
    return [
        Job(id=id, state=state.lower(), user=user, nodes=nodes, elapsed=elapsed, name=name)
        for id, state, user, nodes, elapsed, name in found
    ]


def is_registered(state: str) -> bool:
    """`*` marks a node that doesn't answer. Other flags (powering, reboot, planned) don't matter here."""
    return not state.endswith("*") and state.rstrip("~#!%$@^-+") not in ABSENT_STATES


def rows(command: Sequence[str], fields: Sequence[str]) -> list[list[str]]:
    # Run first, because the other programs take nine seconds to notice that there is no controller.
    if not controller_answers():
        raise Unavailable("the controller doesn't answer")
    try:
        done = subprocess.run(
            [*command, "--noheader", f"--format={'|'.join(fields)}"], capture_output=True, text=True, timeout=ANSWER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from error
    if done.returncode != 0:
        raise Unavailable(done.stderr.strip())
    split = [line.split("|", len(fields) - 1) for line in done.stdout.splitlines()]
    return [row for row in split if len(row) == len(fields)]
