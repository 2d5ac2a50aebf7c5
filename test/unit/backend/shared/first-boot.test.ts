import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  awaitFirstBoot,
  deadlineFiles,
  deadlineSetup,
  firstBootScript,
  usualFirstBootLimitMs,
} from "../../../../src/backend/shared/first-boot.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { orAborted } from "../../../../src/system/time-limit.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

test("a first boot that logs something goes on, and one that doesn't ends with what it logged last", async () => {
  const asked: RemoteCommand[] = [];
  const connection: Pick<Connection, "run"> = {
    run: async (command, signal) => {
      asked.push(command);
      await command.onOutput?.("stderr", "util.py[DEBUG]: started\nutil.py[DEBUG]: Running apt\n");
      return await orAborted(new Promise<never>(() => {}), signal);
    },
  };
  const failure = await failureOf(
    awaitFirstBoot(connection, { name: "agent_0", hasDeadline: false, limitMs: 60 }, neverAborted),
  );
  expect(failure).toMatchObject({ id: "deadline-passed", facts: { node: "agent_0" } });
  expect(unmarked(failure.message)).toEndWith("Last seen: util.py[DEBUG]: Running apt");
  expect(asked[0]?.argv.slice(-2)).toEqual(["", "/run/cloud-init"]);
  expect(asked).toMatchObject([{ sudo: true }]);
});

test("an abort ends the wait for a first boot with its own reason", async () => {
  const interrupt = new AbortController();
  const connection: Pick<Connection, "run"> = {
    run: async (_, signal) => {
      interrupt.abort(new Error("Ctrl-C"));
      return await orAborted(new Promise<never>(() => {}), signal);
    },
  };
  expect((await failureOf(awaitFirstBoot(connection, machine, interrupt.signal))).message).toBe(
    "Ctrl-C",
  );
});

const ended = (status: number, stdout: string, stderr = ""): Pick<Connection, "run"> => ({
  run: async () => Promise.resolve({ status, stdout, stderr }),
});
const machine = { name: "agent_0", hasDeadline: false, limitMs: usualFirstBootLimitMs };

test("a first boot that failed is an error with the last lines of what was said", async () => {
  const lines = Array.from({ length: 50 }, (_, line) => `line ${line}`);
  const failure = await failureOf(
    awaitFirstBoot(ended(1, lines.join("\n"), "noise"), machine, neverAborted),
  );
  expect(failure).toMatchObject({ id: "machine-failed", facts: { node: "agent_0", status: 1 } });
  expect(failure.message.split("\n")).toEqual([
    "agent_0: the first boot failed.",
    ...lines.slice(-40).map((line) => `  ${line}`),
  ]);
  const silent = await failureOf(
    awaitFirstBoot(ended(1, "\n", "no cloud-init"), machine, neverAborted),
  );
  expect(silent.message).toBe("agent_0: the first boot failed.\n  no cloud-init");
});

test("complaints of a first boot that went well are returned", async () => {
  expect(await awaitFirstBoot(ended(3, "no such locale\n"), machine, neverAborted)).toBe(
    "no such locale",
  );
});

test("a machine with a deadline gets a program that ends it then, and one without inherits none", () => {
  const wants = "etc/systemd/system/sysinit.target.d/cluster-e2e-deadline.conf";
  const files = deadlineFiles(new Date("2026-01-01T00:00:00.900Z"));
  const of = (name: string) => files.find((file) => file.name === name);
  expect(of("usr/local/sbin/cluster-e2e-deadline")).toMatchObject({
    mode: 0o755,
    text: expect.stringMatching(/^#!/),
  });
  expect(of("etc/systemd/system/cluster-e2e-deadline.service")?.text).toContain(
    `cluster-e2e-deadline ${Date.parse("2026-01-01T00:00:00Z") / 1000}\n`,
  );
  expect(of(wants)?.text).toContain("Wants=cluster-e2e-deadline.service");
  const without = deadlineFiles(undefined);
  expect(without.map(({ name }) => name)).toEqual(["etc/systemd/system/sysinit.target.d/", wants]);
  expect(without.map(({ text }) => text).join("")).not.toContain("Wants");
  expect(deadlineSetup(undefined)).not.toContain("ExecStart");
  expect(deadlineSetup(new Date())).toContain("ExecStart");
});

/** As cloud-init writes it. */
const result = (errors: readonly string[]) =>
  JSON.stringify({ v1: { datasource: "NoCloud", errors } }, undefined, 1);

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
  const waiting = Bun.spawn(["sh", "-c", firstBootScript, "e2e-first-boot", "", folder.path], {
    env: environment,
  });
  await until("the first look", async () => Bun.file(join(folder.path, "looked")).exists());
  expect(waiting.exitCode).toBeNull();
  await Bun.write(join(folder.path, name), text);
  expect(await waiting.exited).toBe(status);
});

test("while cloud-init's log grows, its last line is printed every ten looks", async () => {
  await using folder = await scratchFolder();
  const stubs = {
    // Ends the wait at the 35th look.
    sleep: `echo >>"$0.calls"; [ "$(wc -l <"$0.calls")" -lt 35 ] || : >"${folder.path}/disabled"`,
    // The log grows until the second time.
    wc: `[ $# = 1 ] && exec /usr/bin/wc "$@"; echo >>"$0.calls"; [ "$(/usr/bin/wc -l <"$0.calls")" = 1 ] && echo 5 || echo 9`,
    tail: `echo "the line after $(/usr/bin/wc -l <"${folder.path}/bin/sleep.calls") looks"`,
  };
  for (const [name, text] of Object.entries(stubs)) {
    await Bun.write(join(folder.path, "bin", name), `#!/bin/sh\n${text}\n`);
    await chmod(join(folder.path, "bin", name), 0o755);
  }
  const waiting = Bun.spawn(["sh", "-c", firstBootScript, "e2e-first-boot", "", folder.path], {
    env: { PATH: `${folder.path}/bin:${process.env["PATH"] ?? ""}` },
    stderr: "pipe",
  });
  const printed = await new Response(waiting.stderr).text();
  expect(await waiting.exited).toBe(0);
  expect(printed).toBe("the line after 10 looks\nthe line after 20 looks\n");
});
