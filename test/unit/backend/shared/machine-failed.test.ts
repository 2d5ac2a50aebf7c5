import { expect, test } from "bun:test";
import {
  withFinding,
  withForeignResources,
} from "../../../../src/backend/shared/foreign-resource.ts";
import {
  assertCgroups1,
  assertIncomplete,
  machineFailed,
} from "../../../../src/backend/shared/machine-errors.ts";
import { pass, warn } from "../../../../src/model/check.ts";
import type { ClusterName, NodeRecord } from "../../../../src/model/cluster-record.ts";
import { outcomeText } from "../../../support/outcome-text.ts";

const node = { id: "c1", role: "agent", index: 0 } as unknown as NodeRecord;

test("the error about a node that ended shows the last eight lines of its console, without colours", () => {
  const said = ` \n${Array.from({ length: 12 }, (_, line) => `\u001B[31mline ${line}\u001B[0m\r`).join("\n")}\n \n`;
  const error = machineFailed(
    { ...node, stateReason: "out of memory" },
    { output: said, hint: "Add memory." },
  );
  const last = Array.from({ length: 8 }, (_, line) => `  line ${line + 4}`).join("\n");
  expect(error.message).toBe(
    `agent_0 (c1) stopped before it could be used: out of memory.\n${last}`,
  );
  expect([error.hint, error.facts]).toEqual([
    "Add memory.",
    { node: "agent_0", machine: "c1", reason: "out of memory" },
  ]);
});

test("without a reason and a console, it says that the reason is not known", () => {
  const { message } = machineFailed(node, { output: "", hint: "" });
  expect(message).toBe("agent_0 (c1) stopped before it could be used: the reason is not known.");
});

test("doctor names things that only look like a cluster's, and nothing else", () => {
  expect(outcomeText(withForeignResources(pass("None"), [], "Remove its tags"))).toBe("pass: None");
  const things = [
    { what: "instance i-1", why: "its tag is malformed" },
    { what: "network n-1", why: "its label is missing" },
  ];
  const text = outcomeText(withForeignResources(pass("None"), things, "Remove its tags"));
  expect(text).toContain(
    "ignores it: instance i-1: its tag is malformed; network n-1: its label is missing.",
  );
  expect(text).toContain("Remove its tags");
});

test("a second problem is added to the first, and to nothing else", () => {
  expect(outcomeText(withFinding(pass("None"), "Two.", "do 2"))).toBe("warn: Two. → do 2");
  expect(outcomeText(withFinding(warn("One.", "Do 1"), "Two.", "do 2"))).toBe(
    "warn: One. Two. → Do 1; do 2",
  );
});

test("only a complete snapshot is in the way of another one with its name", () => {
  const cluster = { id: "mine" } as ClusterName;
  expect(() => assertIncomplete(cluster, "first", false)).not.toThrow();
  expect(() => assertIncomplete(cluster, "first", true)).toThrow(
    expect.objectContaining({ id: "snapshot-exists" }),
  );
});

test("only nodes that are known to have cgroups 2 are refused, and only for a platform that requires version 1", () => {
  const nodes = (cgroupVersion: 1 | 2 | undefined) => ({
    name: "debian-12",
    cgroupVersion,
    advice: "Choose another.",
  });
  for (const version of [1, undefined] as const)
    expect(() => assertCgroups1(true, nodes(version))).not.toThrow();
  expect(() => assertCgroups1(false, nodes(2))).not.toThrow();
  expect(() => assertCgroups1(true, nodes(2))).toThrow(
    expect.objectContaining({ id: "machine-not-set-up" }),
  );
});
