import { expect, test } from "bun:test";
import { explanationOf, notice, windowsOf } from "../../../../src/cluster/report/notice.ts";
import type { ClusterEvent } from "../../../../src/model/event.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const fault = (seconds: number, kind: string, course: "begun" | "shown" | "healed") =>
  ({
    at: at(seconds),
    kind: "fault",
    id: "0123abcd",
    fault: kind,
    text: kind,
    nodes: ["master_0"],
    course,
    seconds: 20,
  }) satisfies ClusterEvent;
const explained = (
  sign: "reboot" | "failed-unit",
  seconds: number,
  events: readonly ClusterEvent[],
): boolean => {
  const windows = windowsOf(events, seconds * 1000);
  return explanationOf(sign, { node: "master_0", ms: seconds * 1000 }, windows) !== undefined;
};

test("a power cut explains that the node boots, however long it takes, and what fails in the minute after that", () => {
  const begun = fault(0, "power", "begun");
  expect(explained("reboot", 170, [begun])).toBe(true);
  const shown = [begun, fault(172, "power", "shown")];
  expect(explained("reboot", 170, shown)).toBe(true);
  expect(explained("failed-unit", 210, shown)).toBe(true);
  expect(explained("failed-unit", 400, shown)).toBe(false);
  expect(explained("failed-unit", 260, [...shown, fault(180, "power", "healed")])).toBe(false);
});

test("a fault's time begins when it is shown", () => {
  const begun = fault(0, "process", "begun");
  expect(explained("failed-unit", 60, [begun])).toBe(false);
  expect(explained("failed-unit", 60, [begun, fault(40, "process", "shown")])).toBe(true);
  expect(explained("failed-unit", 90, [begun, fault(40, "process", "shown")])).toBe(false);
});

test("what nothing explains is noticed behind thousands of lines that a fault explains", async () => {
  const windows = windowsOf([fault(0, "disk", "begun")], 10_000_000);
  const line = (seconds: number) => ({
    ms: seconds * 1000,
    node: "master_0",
    unit: "etcd",
    text: "write: no space left on device",
  });
  const during = Array.from({ length: 5000 }, () => line(10));
  const found = await notice([...during, line(3600)], windows, neverAborted);
  expect(found.map(({ line: { ms }, explanation }) => [ms, explanation])).toEqual([
    [3_600_000, undefined],
    [10_000, "disk"],
  ]);
});

test("only the kernel's own words are an error of the kernel", async () => {
  const text = "Oops: 0002 [#1] SMP";
  const line = (unit: string) => ({ ms: 0, node: `${unit}_0`, unit, text });
  const found = await notice(["app", "kernel", "console"].map(line), [], neverAborted);
  expect(found.map(({ line: { unit }, what }) => [unit, what])).toEqual([
    ["kernel", "kernel error"],
    ["console", "kernel error"],
  ]);
});

test("a snapshot that is restored explains that nodes boot, that clocks jump, and what fails then", () => {
  const restore = (seconds: number, course: "begun" | "done") =>
    ({
      at: at(seconds),
      kind: "snapshot",
      action: "restore",
      name: "ready",
      nodes: ["master_0"],
      course,
    }) satisfies ClusterEvent;
  const events = [restore(0, "begun"), restore(20, "done")];
  const explanations = (["reboot", "clock-jump", "failed-unit", "oom"] as const).map((sign) =>
    explanationOf(sign, { node: "master_0", ms: 30_000 }, windowsOf(events, 30_000)),
  );
  expect(explanations).toEqual(["Restore ready", "Restore ready", "Restore ready", undefined]);
  const create = events.map((event) => ({ ...event, action: "create" }));
  expect(windowsOf(create, 30_000)).toEqual([]);
});
