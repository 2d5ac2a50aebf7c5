import { readFile } from "node:fs/promises";
import { expect, test } from "bun:test";
import { cgroups1Distributions as ofCloud } from "../../../../src/backend/cloud/launch/distributions.ts";
import { cgroups1Distributions as ofVm } from "../../../../src/backend/vm/images/images.ts";

const page = `${import.meta.dir}/../../../../src/platform/README.md`;

// Shows R114.
test.each([
  ["cluster-cloud", ofCloud],
  ["cluster-vm", ofVm],
] as const)(
  "the platform's page names the distributions of %s that have cgroups 1",
  async (program, distributions) => {
    const row =
      new RegExp(`^\\| \`${program}\` +\\| (.*) \\|$`, "m").exec(
        await readFile(page, "utf8"),
      )?.[1] ?? "";
    expect([...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)).toEqual(distributions.slice());
  },
);
