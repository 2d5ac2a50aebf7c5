import { expect, test } from "bun:test";
import {
  type AcceleratorChoice,
  type AcceleratorTrial,
  chooseAccelerator,
  whyTranslated,
} from "../../../../../src/backend/vm/qemu/accelerator.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import type { Accelerator } from "../../../../../src/backend/vm/options.ts";

const x64 = architectureOf("x64");
const broken = { accelerator: "kvm", reason: "emulation failure" } as const;

test.each([
  [{ forced: "tcg", broken }, "it was requested"],
  [{ forced: undefined, broken }, "kvm has failed since this computer started"],
  [{ forced: undefined, broken: undefined }, "no hardware acceleration works here"],
] as const satisfies readonly (readonly [AcceleratorChoice, string])[])(
  "if the choice was %j, machines run under tcg because %s",
  (choice, why) => {
    expect(whyTranslated(choice)).toBe(why);
  },
);

test("one that broke a machine is skipped; a forced one is used or rejected", async () => {
  const trial = (accelerator: Accelerator, problem?: string): AcceleratorTrial => ({
    accelerator,
    problem,
  });
  const both = [trial("kvm"), trial("tcg")];
  expect(chooseAccelerator(both, { forced: undefined, broken }, x64)).toBe("tcg");
  expect(chooseAccelerator(both, { forced: "kvm", broken }, x64)).toBe("kvm");
  expect(chooseAccelerator(both, { forced: "tcg", broken: undefined }, x64)).toBe("tcg");
  const refused = (forced: Accelerator) => () =>
    chooseAccelerator(
      [trial("kvm", "no such device"), trial("tcg")],
      { forced, broken: undefined },
      x64,
    );
  expect(refused("kvm")).toThrow("The accelerator kvm does not work here: no such device.");
  expect(refused("hvf")).toThrow("this operating system does not have it");
});

test.each([
  ["it hangs", "too busy"],
  ["no such accelerator", "Install a QEMU with tcg"],
  ["could not load PC BIOS '/tmp/probe.rom'", "may read this program's files"],
])("if even translation %s, the hint is about what keeps it from running", (problem, hint) => {
  const trials = [{ accelerator: "tcg", problem }] as const;
  const choose = () => chooseAccelerator(trials, { forced: undefined, broken: undefined }, x64);
  expect(choose).toThrow(expect.objectContaining({ hint: expect.stringContaining(hint) }));
});
