import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { awaitFirstBoot, firstBootScript, usualFirstBootLimitMs } from "../../../../src/backend/shared/first-boot.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

test.each([usualFirstBootLimitMs, 40 * 60_000])(
  "a machine's first boot may take %d ms where it is told so",
  async (limitMs) => {
    const asked: RemoteCommand[] = [];
    const connection: Pick<Connection, "run"> = {
      run: async (command) => {
        asked.push(command);
        return Promise.resolve({ status: 0, stdout: "", stderr: "" });
      },
    };
    expect(
      await awaitFirstBoot(connection, { name: "agent_0", hasDeadline: false, limitMs }, neverAborted),
    ).toBeUndefined();
    expect(asked).toMatchObject([{ sudo: true, limitMs, task: "its first boot" }]);
  },
);

/** As cloud-init writes it. */
const result = (errors: readonly string[]) => JSON.stringify({ v1: { datasource: "NoCloud", errors } }, undefined, 1);

test.each([
  ["well", "result.json", result([]), 0],
  ["with errors", "result.json", result(["no such locale"]), 3],
  ["because it is switched off", "disabled", "", 0],
])("the wait is over when cloud-init has ended %s", async (_, name, text, status) => {
  await using folder = await scratchFolder();
  // Pauses between two looks at cloud-init's files.
  const pausing = `#!/bin/sh\n: >"${folder.path}/looked"\nexec /bin/sleep 0.05\n`;
  await Bun.write(join(folder.path, "bin/sleep"), pausing);
  await chmod(join(folder.path, "bin/sleep"), 0o755);
  const environment = { PATH: `${folder.path}/bin:${process.env["PATH"] ?? ""}` };
  const waiting = Bun.spawn(["sh", "-c", firstBootScript, "e2e-first-boot", "", folder.path], { env: environment });
  await until("the first look", async () => Bun.file(join(folder.path, "looked")).exists());
  expect(waiting.exitCode).toBeNull();
  await Bun.write(join(folder.path, name), text);
  expect(await waiting.exited).toBe(status);
});
