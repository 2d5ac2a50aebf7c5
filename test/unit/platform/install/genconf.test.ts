import { expect, test } from "bun:test";
import { generate } from "../../../../src/platform/install/genconf.ts";
import type { PhaseContext } from "../../../../src/platform/install/phase.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** Generates on a node where the artifact's --genconf ends like this. */
function generateWith(status: number, stdout: string) {
  const run = async ({ argv }: RemoteCommand) =>
    argv.includes("e2e-genconf")
      ? { status, stdout, stderr: "" }
      : { status: 0, stdout: "", stderr: "" };
  const step = { update: () => {}, done: () => {}, [Symbol.dispose]: () => {} };
  const context = {
    connection: { run } as unknown as Connection,
    reference: "master_0",
    step,
  } as unknown as PhaseContext;
  return generate([]).run(context, neverAborted);
}

const lines = Array.from({ length: 50 }, (_, index) => `line ${index}`);
const output = `${lines.join("\n")}\n`;

test.each(["cluster", "dcos"] as const)("the install script names the layout %s", async (name) => {
  expect((await generateWith(0, `${name}_install.sh\n`)).name).toBe(name);
});

test("an artifact that wrote no install script is not complete", async () => {
  const failure = await failureOf(generateWith(0, "\n"));
  expect(failure.id).toBe("artifact-invalid");
  expect(failure.message).toContain(
    "created none of cluster_install.sh, dcos_install.sh, platform_install.sh in genconf/serve.",
  );
});

test("a full disk is reported as such, with the last lines", async () => {
  const failure = await failureOf(generateWith(91, output));
  expect(failure).toMatchObject({
    id: "install-failed",
    hint: expect.stringContaining("larger disk"),
  });
  expect(failure.facts).toEqual({ node: "master_0", output: lines.slice(10) });
});

test.each([
  [output, lines.slice(10).map((line) => `  ${line}`), lines.slice(10)],
  ["", ["  (it exited with status 1 and printed nothing)"], []],
])("what the artifact refuses is quoted", async (stdout, shown, kept) => {
  const failure = await failureOf(generateWith(1, stdout));
  expect(failure).toMatchObject({
    id: "configuration-refused",
    facts: { status: 1, output: kept },
  });
  expect(failure.message).toBe(
    ["The artifact refused the cluster configuration:", ...shown].join("\n"),
  );
});
