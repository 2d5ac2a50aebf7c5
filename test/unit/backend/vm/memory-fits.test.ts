/** On which computers the memory in a cluster's file can continue. */
import { expect, test } from "bun:test";
import { whyMemoryDoesNotFit } from "../../../../src/backend/vm/files/resolve-file.ts";
import { unmarked } from "../../../../src/outside-text.ts";

const works = (accelerator: "kvm" | "tcg") => ({ accelerator, problem: undefined });
const here = {
  version: "7.2.9",
  cpu: "Intel(R) Xeon(R) (abc)",
  trials: [works("kvm"), works("tcg")],
  cpuProblem: undefined,
};
const machines = { accelerator: "kvm", isSandboxed: true, memoryMegabytes: 512, cpus: 1 } as const;
const saved = { qemuVersion: "7.2.22", machines, cpu: here.cpu };
const other = "Intel(R) Core(TM) i7 (def)";

const why = (
  facts: Partial<typeof saved> & { readonly cpuModel?: string },
  on: object = {},
): string | undefined => {
  const { cpuModel, ...rest } = facts;
  const reason = whyMemoryDoesNotFit(
    { ...saved, ...rest, machines: { ...machines, ...rest.machines, cpuModel } },
    { ...here, ...on },
  );
  return reason === undefined ? undefined : unmarked(reason);
};

test("under hardware acceleration, memory fits the same processor", () => {
  expect(why({})).toBeUndefined();
  expect(why({ cpu: other })).toBe(`their memory was saved on another processor, ${other}`);
  expect(why({ qemuVersion: "8.0.0" })).toBe(
    "QEMU 8.0.0 saved their memory, and this computer has 7.2.9",
  );
  expect(why({}, { trials: [works("tcg")] })).toBe(
    "their memory was saved under kvm, which does not work here",
  );
});

test("with a CPU model, memory fits every processor of the same maker that offers it", () => {
  expect(why({ cpu: other, cpuModel: "Nehalem" })).toBeUndefined();
  expect(why({ cpu: "AMD EPYC (def)", cpuModel: "Nehalem" })).toMatch(
    /saved on another processor, AMD EPYC/,
  );
  expect(why({ cpu: other, cpuModel: "Nehalem" }, { cpuProblem: "it lacks sse4" })).toBe(
    "the CPU model Nehalem does not work: it lacks sse4",
  );
});
