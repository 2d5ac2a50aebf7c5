/** The check of the example slurm, with stand-ins for Slurm's programs. */
import { expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const check = join(import.meta.dir, "../../../../src/platform/examples/slurm/check");
const isUp = "echo 'Slurmctld(primary) at controller is UP'";

async function runCheck(role: string, programs: { readonly [name: string]: string }) {
  await using folder = await scratchFolder();
  for (const [name, text] of Object.entries(programs)) {
    await Bun.write(join(folder.path, name), `#!/bin/sh\n${text}\n`);
    await chmod(join(folder.path, name), 0o755);
  }
  const env = {
    PATH: `${folder.path}:/usr/bin:/bin`,
    CLUSTER_ROLE: role,
    CLUSTER_INDEX: "1",
  };
  const child = Bun.spawn([check], { env, stdio: ["ignore", "pipe", "inherit"] });
  const stdout = await new Response(child.stdout).text();
  return { status: await child.exited, said: stdout.trim().split("\n").at(-1) };
}

const ready = "echo 'agent-0 is idle'; echo 'agent-1 is mixed'";
const drained = "echo 'agent-0 is drained'; echo 'agent-1 is idle'";
const silence = "Slurm's controller does not list its nodes, or not this one";

test.each([
  ["master", ready, 0, ""],
  ["agent", ready, 0, ""],
  ["master", drained, 1, "agent-0 is drained"],
  ["agent", drained, 0, ""],
  ["agent", "echo 'agent-0 is idle'", 1, silence],
  ["master", "exit 1", 1, silence],
  ["agent", "exit 1", 1, silence],
])("on the role %s, of nodes that are listed by %s", async (role, sinfo, status, said) => {
  expect(await runCheck(role, { scontrol: isUp, sinfo })).toEqual({ status, said });
});

test("a controller that doesn't answer is named", async () => {
  expect(await runCheck("agent", { scontrol: "exit 1", sinfo: ready })).toEqual({
    status: 1,
    said: "Slurm's controller does not answer",
  });
});
