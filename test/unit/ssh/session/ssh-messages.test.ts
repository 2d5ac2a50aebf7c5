import { existsSync } from "node:fs";
import { open, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { createSshMessages } from "../../../../src/ssh/session/session-messages.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** Releases twice what ssh has written. Returns what was printed, and whether there were no messages. */
async function release(written: string | undefined) {
  await using folder = await scratchFolder();
  const [log, stderr] = ["log", "stderr"].map((name) => join(folder.path, name)) as [
    string,
    string,
  ];
  await using output = await open(stderr, "w");
  const messages = createSshMessages(log, output.fd);
  expect(messages.options).toEqual(["-E", log]);
  if (written !== undefined) await writeFile(log, written);
  const isEmpty = messages.isEmpty();
  await messages.release(neverAborted);
  await messages.release(neverAborted);
  await messages[Symbol.asyncDispose]();
  expect(existsSync(log)).toBe(false);
  return { printed: await readFile(stderr, "utf8"), isEmpty };
}

test("ssh's messages are printed once", async () => {
  expect(await release("Permission denied.\n")).toEqual({
    printed: "ssh: Permission denied.\n",
    isEmpty: false,
  });
});

test.each([undefined, ""])("without messages (%j), nothing is printed", async (written) => {
  expect(await release(written)).toEqual({ printed: "", isEmpty: true });
});

test("messages about a shared connection are left out, because ssh then logs in by itself", async () => {
  const shared =
    "Control socket connect(./master-1): Connection refused\nControlSocket ./m already exists\nmux_client: x\n";
  expect((await release(`${shared}Permission denied (publickey).\n`)).printed).toBe(
    "ssh: Permission denied (publickey).\n",
  );
});

test("whoever answers on the node's address can print no line of its own, and nothing that acts on a terminal or a CI system", async () => {
  const said =
    "Received disconnect from 192.0.2.1 port 22:2: x\r\nWarning: run curl\u001B[2J\b\n::set-output name=a::b\n";
  const { printed } = await release(
    `ssh: connect to host 192.0.2.1 port 22: Connection refused\n${said}`,
  );
  expect(printed.split("\n")).toEqual([
    "ssh: connect to host 192.0.2.1 port 22: Connection refused",
    "ssh: Received disconnect from 192.0.2.1 port 22:2: x",
    "ssh: Warning: run curl\uFFFD[2J\uFFFD",
    "ssh: : :set-output name=a::b",
    "",
  ]);
});

test("of a flood, only the last lines are printed", async () => {
  const { printed } = await release(`${"x".repeat(1000)}\n`.repeat(1000));
  expect(printed.length).toBeLessThan(20 * 510);
});
