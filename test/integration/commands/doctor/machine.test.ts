/** doctor's checks of this machine, with real folders and programs. */

import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { platform, userInfo } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { browserCheck, sshClientCheck } from "../../../../src/commands/doctor/machine-checks.ts";
import { stateFolderCheck } from "../../../../src/commands/doctor/state-folder.ts";
import type { Check } from "../../../../src/model/check.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** A folder for the PATH with these shell scripts as programs. */
async function programs(scripts: Readonly<Record<string, string>>) {
  const folder = await scratchFolder();
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(folder.path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return folder;
}

const told = async (check: Check): Promise<string> => outcomeText(await check.run(neverAborted));

test("OpenSSH's version, which it prints to stderr, and its path", async () => {
  await using folder = await programs({ ssh: "echo 'OpenSSH_9.2p1 Debian' >&2" });
  const text = await told(sshClientCheck({ PATH: folder.path }));
  expect(text).toBe(`pass: OpenSSH_9.2p1 Debian (${join(folder.path, "ssh")})`);
});

test.each<[string, Readonly<Record<string, string>>, RegExp]>([
  [
    "no ssh on the PATH",
    {},
    /^fail: There is no ssh on this computer's PATH\. → Install .*openssh-client/,
  ],
  [
    "another ssh than OpenSSH's",
    { ssh: "echo Dropbear >&2" },
    /^warn: .* is not OpenSSH: its version is "Dropbear"\. → Inst/,
  ],
  [
    "an ssh that does not run",
    { ssh: "echo broken >&2; exit 3" },
    /^fail: Cannot run .*: .*broken.* → Install/s,
  ],
])("%s", async (_what, scripts, text) => {
  await using folder = await programs(scripts);
  expect(await told(sshClientCheck({ PATH: folder.path }))).toMatch(text);
});

test("without a PATH, ssh is missing", async () => {
  expect(await told(sshClientCheck({}))).toStartWith("fail: ");
});

test("a state folder that doesn't exist yet can be created; the check doesn't create it", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "local", "state", "cluster-e2e");
  expect(await told(stateFolderCheck(path, process.env))).toBe(`pass: ${path} can be created`);
  expect(await readdir(folder.path)).toEqual([]);
});

test("a state folder that ssh can't take keys from is refused, as create refuses it", async () => {
  await using folder = await scratchFolder();
  const check = stateFolderCheck(join(folder.path, 'a"b'), process.env);
  expect(await failureOf(check.run(neverAborted))).toMatchObject({
    id: "machine-not-set-up",
    message: expect.stringContaining("Cannot pass the path"),
  });
});

test("a private state folder passes and isn't changed", async () => {
  await using folder = await scratchFolder();
  await chmod(folder.path, 0o700);
  expect(await told(stateFolderCheck(folder.path, process.env))).toStartWith("pass: ");
  expect(await readdir(folder.path)).toEqual([]);
});

test.each([
  ["777", "fail: Other users can write"],
  ["720", "fail: Other users can write"],
  ["755", "warn: Other users can read"],
  ["740", "warn: Other users can read"],
])("a state folder with mode %s", async (octal, text) => {
  const mode = Number.parseInt(octal, 8);
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "my state");
  await mkdir(folder);
  await chmod(folder, mode);
  const found = await told(stateFolderCheck(folder, process.env));
  expect(found).toStartWith(text);
  expect(found).toEndWith(`chmod 700 '${folder}'`);
  expect((await stat(folder)).mode & 0o777).toBe(mode);
});

test.each([
  ["777", true],
  ["1777", false],
  ["755", false],
])("a state folder below a folder with mode %s", async (octal, isReplaceable) => {
  await using folder = await scratchFolder();
  const [above, own] = [join(folder.path, "above"), join(folder.path, "above", "own")];
  await mkdir(own, { recursive: true, mode: 0o700 });
  await chmod(above, Number.parseInt(octal, 8));
  const link = join(folder.path, "link");
  await symlink(own, link);
  const expected = isReplaceable
    ? expect.stringMatching(/^warn: Other users can replace .*\/above\. → .*chmod go-w /)
    : expect.stringMatching(/^pass: /);
  for (const path of [own, link, join(above, "new")])
    expect(await told(stateFolderCheck(path, process.env))).toEqual(expected);
});

test.skipIf(userInfo().uid !== 0)("a state folder on a full disk (needs root)", async () => {
  await using folder = await scratchFolder();
  await Bun.$`mount -t tmpfs -o size=64k,mode=700 tmpfs ${folder.path}`;
  try {
    const found = await told(stateFolderCheck(folder.path, process.env));
    expect(found).toStartWith(
      `fail: Cannot write to the state folder ${folder.path}: ${folder.path}: no space left on device.`,
    );
  } finally {
    await Bun.$`umount ${folder.path}`;
  }
});

test.skipIf(userInfo().uid !== 0)(
  "a state folder below a folder of another user, who can replace it (needs root)",
  async () => {
    await using folder = await scratchFolder();
    const own = join(folder.path, "own");
    await mkdir(own, { mode: 0o700 });
    await chown(folder.path, 1234, 1234);
    for (const mode of [0o755, 0o1755]) {
      await chmod(folder.path, mode);
      expect(await told(stateFolderCheck(own, process.env))).toMatch(
        /^warn: The user 1234 can replace the state folder .*\/own, and owns .* → Set XDG_STATE_HOME/,
      );
    }
  },
);

test.skipIf(userInfo().uid !== 0)("a state folder of another user (needs root)", async () => {
  await using folder = await scratchFolder();
  await chmod(folder.path, 0o700);
  await chown(folder.path, 4_711, 4_711);
  expect(await told(stateFolderCheck(folder.path, process.env))).toMatch(
    /^warn: .* belongs to another user \(4711\)\. → /,
  );
});

test("an SSH key that others can read is reported", async () => {
  await using folder = await scratchFolder();
  await chmod(folder.path, 0o700);
  const creations = ["one", "two"].map((name) => join(folder.path, "cloud", "us-west-2", name));
  for (const [index, creation] of creations.entries()) {
    await mkdir(creation, { recursive: true });
    await writeFile(join(creation, "id_ed25519"), "key\n", { mode: index === 0 ? 0o600 : 0o644 });
  }
  const key = join(creations[1]!, "id_ed25519");
  const text = await told(stateFolderCheck(folder.path, process.env));
  expect(text).toStartWith(`fail: Other users can read an SSH key: ${key}.`);
  expect(text).toEndWith(`chmod 600 ${key}`);
});

test.each(["cluster-e2e", "file/cluster-e2e", "link"])(
  "another file is in the way: %s",
  async (name) => {
    await using folder = await scratchFolder();
    await writeFile(join(folder.path, "cluster-e2e"), "");
    await writeFile(join(folder.path, "file"), "");
    await symlink(join(folder.path, "nowhere"), join(folder.path, "link"));
    const path = join(folder.path, name);
    const text = await told(stateFolderCheck(path, process.env));
    expect(text).toMatch(/^fail: Cannot (?:create|write to) the state folder /);
    expect(text).toContain(` the state folder ${path}: `);
    expect(text).toContain("XDG_STATE_HOME");
  },
);

test.skipIf(platform() !== "linux")(
  "a place where nothing can be created (needs Linux's /proc)",
  async () => {
    const text = await told(stateFolderCheck("/proc/cluster-e2e", process.env));
    expect(text).toMatch(
      /^fail: Cannot create the state folder \/proc\/cluster-e2e: \/proc: [a-z ]+\./,
    );
  },
);

test.each([
  ["removed", 0, "warn: An ssh still holds a connection to a cluster that is gone: "],
  ["removed", 255, "pass: "],
  ["finished", 0, "pass: "],
])("a cluster is %s, and ssh -O check ends with %d", async (state, status, text) => {
  await using folder = await scratchFolder();
  await using bin = await programs({ ssh: `exit ${status}` });
  await chmod(folder.path, 0o700);
  const directory = join(folder.path, "cloud", "us-west-2", "demo-0123456789abcdef");
  await mkdir(directory, { recursive: true });
  const creation = { schemaVersion: 1, clusterId: "demo", creationId: "0123456789abcdef", state };
  await writeFile(join(directory, "creation.json"), JSON.stringify(creation));
  const server = createServer();
  await new Promise<void>((resolve) =>
    server.listen(join(directory, "master-0123456789abcdef"), resolve),
  );
  const found = await told(stateFolderCheck(folder.path, { PATH: bin.path }));
  server.close();
  expect(found).toStartWith(text);
  if (text.startsWith("warn")) expect(found).toContain(join(directory, "master-*"));
});

interface Desktop {
  readonly on: string;
  readonly program?: string;
  readonly screen?: Readonly<Record<string, string>>;
}

test.each<[string, Desktop, string]>([
  [
    "a screen and xdg-open",
    { on: "linux", program: "xdg-open", screen: { DISPLAY: ":0" } },
    "pass: ",
  ],
  [
    "a Wayland screen",
    { on: "linux", program: "xdg-open", screen: { WAYLAND_DISPLAY: "wayland-0" } },
    "pass: ",
  ],
  [
    "no xdg-open",
    { on: "linux", screen: { DISPLAY: ":0" } },
    "warn: web cannot open a browser: there is no xdg-open",
  ],
  [
    "no screen",
    { on: "linux", program: "xdg-open", screen: { DISPLAY: "" } },
    "warn: web cannot open a browser: no DISP",
  ],
  ["macOS", { on: "darwin", program: "open" }, "pass: "],
])("a browser: %s", async (_what, { on, program, screen }, text) => {
  await using folder = await programs(program === undefined ? {} : { [program]: "" });
  expect(await told(browserCheck(on, { ...screen, PATH: folder.path }))).toStartWith(text);
});
