import { expect, test } from "bun:test";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../../src/backend/vm/vm-kind.ts";
import { onceOptions } from "../../../../src/commands/once/once-options.ts";

test.each([containerKind, vmKind])(
  "clusters of once end by themselves after four hours: %#",
  (kind) => {
    expect(onceOptions(kind).lifetime).toMatchObject({
      flag: "--lifetime",
      default: 4 * 3_600_000,
      defaultText: "4h",
    });
  },
);

test("clusters in the cloud have a lifetime that nobody chooses", () => {
  expect(Object.keys(onceOptions(cloudKind))).not.toContain("lifetime");
});
