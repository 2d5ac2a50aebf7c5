import { expect, test } from "bun:test";
import { syncCheckoutToNode } from "../../../../src/platform/checkout/checkout-sync.ts";
import type { Checkout, SyncFile } from "../../../../src/platform/checkout/checkout.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { layoutOf } from "../../../support/layout-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

test("no file of a large checkout is sent again if only its time differs", async () => {
  const sum = "0".repeat(64);
  const files = Array.from({ length: 40_000 }, (_, index) => ({
    path: `a_folder_with_a_long_name/test_of_something_${index}.py`,
    mode: 0o644,
    sizeBytes: 1,
    modifiedMs: 2_000,
  })) as unknown as readonly SyncFile[];
  const layout = layoutOf("cluster");
  const state = [
    `# layout ${layout.name}\n# version\n{"dcos-variant": "enterprise"}\n# tests\n`,
    ...files.map(({ path }) => `644 1 1.0 tests/${path}\0`),
    ...files.map(({ path }) => `sent own tests/${path}\0`),
  ].join("");
  const sums = `# tests\n${files.map(({ path }) => `${sum}  ./${path}\n`).join("")}# library\n`;
  // As connections do, it keeps the end of what is longer.
  const run = async ({ argv, keptCharacters = 4 * 1024 * 1024 }: RemoteCommand) => ({
    status: 0,
    stdout: (argv.at(-1) === "e2e-sync-state" ? state : sums).slice(-keptCharacters),
    stderr: "",
  });
  const contents = new Map([[layout.name, { tests: files, library: [] }]]);
  const checkout: Checkout = { folder: "/checkout", variant: "enterprise", contents };
  const target = {
    connection: { run } as unknown as Connection,
    reference: "master_0",
    layouts: [layout],
    variant: "enterprise",
    checksum: false,
    sumOf: async () => sum,
  } as const;
  const report = await syncCheckoutToNode(checkout, target, neverAborted);
  expect(report).toEqual({ files: 40_000, sentFiles: 0, sentBytes: 0 });
});
