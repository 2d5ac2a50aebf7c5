import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { restartSshd, stdinOf } from "../../../../../src/backend/vm/copies/replace-keys.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const replacement = {
  publicKey: "ssh-ed25519 AAAA login",
  hostKey: { publicKey: "ssh-ed25519 BBBB", privateKey: "-----BEGIN\nsecret\n-----END\n" },
};

test("a machine gets its keys", () => {
  const keys = [
    "ssh-ed25519 AAAA login",
    "ssh-ed25519 BBBB",
    "-----BEGIN",
    "secret",
    "-----END",
    "end",
    "",
  ];
  expect(stdinOf(replacement).split("\n")).toEqual(keys);
});

/** Runs the script with a systemctl that knows only one unit. Returns its status and what was asked of systemctl. */
async function restart(unit: string, pid: number | string | undefined) {
  await using folder = await scratchFolder();
  const [pidFile, log] = [join(folder.path, "sshd.pid"), join(folder.path, "log")];
  if (pid !== undefined) await writeFile(pidFile, `${pid}\n`);
  const systemctl = `#!/bin/sh\necho "$@" >>'${log}'\n[ "$2" = ${unit} ]\n`;
  await writeFile(join(folder.path, "systemctl"), systemctl, { mode: 0o755 });
  const env = { PATH: `${folder.path}:/usr/bin:/bin` };
  const { exited, stderr } = Bun.spawn(["sh", "-c", restartSshd(pidFile)], { env, stderr: "pipe" });
  const said = await new Response(stderr).text();
  return {
    status: await exited,
    said,
    asked: (await readFile(log, "utf8").catch(() => "")).split("\n").slice(0, -1),
  };
}

test.each([
  ["there is none", () => undefined],
  ["its process has ended", () => 2 ** 30],
  ["another process has its number", () => process.pid],
  ["it holds no number", () => "x"],
])("without sshd's process file, systemd restarts it by either name: %s", async (_, pid) => {
  const [first, second] = ["restart ssh.service", "restart sshd.service"];
  expect(await restart("ssh.service", pid())).toEqual({ status: 0, said: "", asked: [first] });
  expect(await restart("sshd.service", pid())).toEqual({
    status: 0,
    said: "",
    asked: [first, second],
  });
  expect((await restart("none", pid())).status).not.toBe(0);
});
