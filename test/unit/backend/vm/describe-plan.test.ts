import { expect, test } from "bun:test";
import type { CreationRequest } from "../../../../src/backend/contract.ts";
import type { VmOptions } from "../../../../src/backend/vm/options.ts";
import { type ResolvedCreation, describePlan } from "../../../../src/backend/vm/plan.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";

const request = {
  clusterId: "own",
  counts: { master: 1, agent: 2, public_agent: 0 },
  options: { memoryMegabytes: 2048, cpus: 2, diskMegabytes: 10_240 },
} as CreationRequest<VmOptions>;

const planned = (image: object, accelerator = "kvm", options: Partial<VmOptions> = {}) => {
  const resolved = {
    qemuVersion: "7.2",
    accelerator,
    choice: { trials: [] },
    image: { name: "debian-12", ...image },
  };
  const asked = { ...request, options: { ...request.options, ...options } };
  return describePlan(asked, resolved as unknown as ResolvedCreation, systemClock);
};

test.each([
  [{}, "will be downloaded", false],
  [{ path: "/images/debian-12" }, "present", true],
])("an image %j %s", (image, text, isPresent) => {
  const { lines, facts } = planned(image);
  expect(lines).toContainEqual(["Image", `debian-12 (${text})`]);
  expect(lines).toContainEqual(["Engine", "QEMU 7.2, kvm"]);
  expect(lines).toContainEqual(["Machines", "3: 1 master, 2 agents, 0 public agents"]);
  expect(facts).toMatchObject({
    image: { isPresent },
    counts: { masters: 1, agents: 2, publicAgents: 0 },
  });
});

test("a plan says what each machine gets, and how it is reached", () => {
  const { lines, facts, counts } = planned({});
  const text = "2048 MB of memory, 2 CPUs, a disk of up to 10240 MB";
  expect(counts).toEqual({ master: 1, agent: 2, public_agent: 0 });
  expect(lines).toEqual(
    expect.arrayContaining([
      ["Cluster", "own"],
      ["Per machine", text],
      ["Network", expect.stringContaining("private network")],
      ["Reached at", "ports of 127.0.0.1"],
    ]),
  );
  expect(facts).not.toHaveProperty("cpuModel");
  const { lines: others, facts: more } = planned({}, "kvm", { cpuModel: "Nehalem" });
  expect(others).toContainEqual(["Per machine", text.replace("CPUs", "CPUs (Nehalem)")]);
  expect(planned({}, "kvm", { cpus: 1 }).lines).toContainEqual([
    "Per machine",
    text.replace("2 CPUs", "1 CPU"),
  ]);
  expect(more).toMatchObject({
    cpuModel: "Nehalem",
    memoryMegabytes: 2048,
    cpus: 2,
    diskMegabytes: 10_240,
  });
});

test("a plan for translated machines says why they are slow", () => {
  expect(planned({}, "tcg").lines).toContainEqual([
    "Engine",
    "QEMU 7.2, tcg; no hardware acceleration works here",
  ]);
});

test("the clocks of virtual machines are not synchronized, so the platform's check of them is off", () => {
  const runtime = {
    environment: { HOME: "/nowhere" },
    clock: systemClock,
    progress: silentProgress,
  };
  expect(createVmBackend(runtime).nodes.nodesKeepTime).toBeFalse();
});
