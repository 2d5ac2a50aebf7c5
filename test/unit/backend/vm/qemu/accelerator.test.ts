import { expect, test } from "bun:test";
import { type AcceleratorChoice, whyTranslated } from "../../../../../src/backend/vm/qemu/accelerator.ts";

const broken = { accelerator: "kvm", reason: "emulation failure" } as const;

test.each([
  [{ forced: "tcg", broken }, "it was requested"],
  [{ forced: undefined, broken }, "kvm has failed since this computer started"],
  [{ forced: undefined, broken: undefined }, "no hardware acceleration works here"],
] as const satisfies readonly (readonly [AcceleratorChoice, string])[])(
  "if the choice was %p, machines run under tcg because %s",
  (choice, why) => {
    expect(whyTranslated(choice)).toBe(why);
  },
);
