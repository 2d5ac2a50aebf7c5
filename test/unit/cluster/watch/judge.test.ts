import { describe, expect, test } from "bun:test";
import { journalExpression, judgeLine } from "../../../../src/cluster/watch/judge-line.ts";
import { judgeTick, readTick, tickOfBoot } from "../../../../src/cluster/watch/judge-tick.ts";

const patterns = {
  errors: ["fatal*raft", "oops"],
  allowed: ["etcd: harmless", "result 'exit-code'*old"],
};

test.each([
  ["kernel", "Out of memory: Killed process 812 (java) total-vm:4kB", "oom"],
  ["kernel", "Memory cgroup out of memory: Kill process 7 (x) score 9", "oom"],
  ["kernel", "Out of memory (oom_kill_allocating_task): Killed process 7 (x)", "oom"],
  ["systemd", "app.service: A process of this unit has been killed by the OOM killer.", "oom"],
  ["systemd", "app.service: Failed with result 'oom-kill'.", "oom"],
  ["kernel", "kernel BUG at mm/slub.c:1", "kernel-error"],
  ["kernel", "Oops: 0002 [#1] SMP", "kernel-error"],
  ["kernel", "general protection fault: 0000 [#1] SMP", "kernel-error"],
  [
    "kernel",
    "general protection fault, probably for non-canonical address 0x1: 0000 [#1]",
    "kernel-error",
  ],
  ["systemd-coredump", "Process 9 (app) of user 0 dumped core.", "core-dump"],
  ["systemd", "app.service: Main process exited, code=dumped, status=6/ABRT", "core-dump"],
  ["systemd", "app.service: Main process exited, code=killed, status=9/KILL", "failed-unit"],
  ["systemd", "app.service: Failed with result 'exit-code'.", "failed-unit"],
  ["systemd", "Unit app.service entered failed state.", "failed-unit"],
  ["etcd", "a fatal error of raft", "error-line"],
])("%s: %s: %s", (unit, text, kind) => {
  const verdict = judgeLine({ unit, text }, patterns);
  expect(verdict?.kind).toBe(kind as never);
  if (kind === "failed-unit") expect(verdict?.subject).toBe("app.service");
  // The node's grep ignores case.
  expect(new RegExp(journalExpression(patterns, "the-mark"), "i").test(text)).toBe(true);
});

test.each([
  ["app", "Out of memory: Killed process 812 (java)"],
  ["kernel", "traps: app[7] general protection fault ip:7f3a sp:7ffe error:0 in libc.so.6[7f3a+1]"],
  ["sudo", "root : COMMAND=/bin/sh -c echo oops"],
  ["cluster-e2e", "fault oops begins"],
  ["sshd", "oops: Connection from 10.0.0.1 port 49878: Broken pipe [preauth]"],
  ["systemd", "cluster-e2e-fault-1.service: Failed with result 'signal'."],
  ["systemd", "app.service: Deactivated successfully."],
  ["app", "write: No space left on device"],
  ["etcd", "harmless oops"],
  ["systemd", "app.service: Failed with result 'exit-code', of the old one"],
])("%s: %s: nothing", (unit, text) => {
  expect(judgeLine({ unit, text }, patterns)).toBeUndefined();
});

describe("two looks at a node's clock", () => {
  const kindsOf = (one: string, other: string): readonly string[] =>
    judgeTick(readTick(other)!, readTick(one)).map(({ kind, text }) => `${kind}: ${text}`);

  test("that agree say nothing, also if the node was slow to answer", () => {
    expect(kindsOf("1000.5 10.00 10.00 0 0", "1003.5 13.00 13.01 0 0")).toEqual([]);
    expect(kindsOf("1000.5 10.00 10.00 0 0", "1013.5 13.00 33.00 0 0")).toEqual([]);
  });

  test("show a jump in either direction", () => {
    expect(kindsOf("1000.5 10.00 10.00 0 0", "1063.5 13.00 13.00 0 0")).toEqual([
      "clock-jump: the node's clock was set forward by 60.0 s",
    ]);
    expect(kindsOf("1000.5 10.00 10.00 0 0", "943.5 13.00 13.00 0 0")).toEqual([
      "clock-jump: the node's clock was set back by 60.0 s",
    ]);
  });

  test("show kills for lack of memory, unless they were in other containers", () => {
    const killed = ["oom: the kernel has killed at least one process for lack of memory"];
    expect(kindsOf("1000.5 10.00 10.00 1 70", "1003.5 13.00 13.00 3 76")).toEqual(killed);
    expect(kindsOf("1000.5 10.00 10.00 1 70", "1003.5 13.00 13.00 3 70")).toEqual([]);
    expect(kindsOf("1000.5 10.00 10.00 1 70", "1003.5 13.00 13.00 1 76")).toEqual([]);
    expect(kindsOf("1000.5 10.00 10.00 3 3", "1003.5 13.00 13.00 0 0")).toEqual([]);
  });

  test.each([
    ["its own counters", "1000.5 10.00 10.00 3 3", "1003.5 13.00 13.00 1 1", true],
    ["its own, without a kill", "1000.5 10.00 10.00 3 3", "9003.5 13.00 13.00 0 0", false],
    ["the computer's", "1000.5 10.00 10.00 3 70", "1003.5 13.00 13.00 4 2", true],
    ["the computer's, killed before", "1000.5 10.00 10.00 3 70", "1003.5 13.00 13.00 3 2", false],
    [
      "the computer's, killed elsewhere",
      "1000.5 10.00 10.00 3 70",
      "1003.5 13.00 13.00 4 0",
      false,
    ],
  ])("show a kill since the node has booted, by %s", (_, before, after, hasKilled) => {
    const kinds = judgeTick(readTick(after)!, tickOfBoot(readTick(before)!)).map(
      ({ kind }) => kind,
    );
    expect(kinds).toEqual(hasKilled ? ["oom"] : []);
  });

  test("of another shape are none", () => {
    expect(readTick("x 10.00 10.00 0 0")).toBeUndefined();
    expect(readTick("1000.%N 10.00 10.00 0 0")).toBeUndefined();
  });
});
