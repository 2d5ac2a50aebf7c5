import { expect, test } from "bun:test";
import { awaitFirstBoot, usualFirstBootLimitMs } from "../../../src/backend/first-boot.ts";
import type { Connection, RemoteCommand } from "../../../src/ssh/connection.ts";

const never = new AbortController().signal;

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
    expect(await awaitFirstBoot(connection, { name: "agent_0", hasDeadline: false, limitMs }, never)).toBeUndefined();
    expect(asked).toMatchObject([{ sudo: true, limitMs, task: "its first boot" }]);
  },
);
