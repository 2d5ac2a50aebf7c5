/** People who are only a number to their system, as in many containers, get a reason and a remedy in one line each. */
import { expect, test } from "bun:test";
import { chown } from "node:fs/promises";
import { type Ended, executablePath, run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

const uid = 12345;
const lack =
  process.getuid?.() !== 0 || Bun.which("setpriv") === null ? "needs root and setpriv" : undefined;
const programs = ["cluster-cloud", "cluster-container", "cluster-vm"] as const;

/** The executable is handed over open, because this user may not be able to enter its folder. Nothing else is inherited. */
const asNobody = (
  program: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> => {
  const given = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", COLUMNS: "10000", ...environment };
  const variables = Object.entries(given).map(([name, value]) => `${name}=${value}`);
  const drop = `setpriv --reuid ${uid} --regid ${uid} --clear-groups env -i`;
  const line = `exec 3<"$0"; exec ${drop} ${variables.join(" ")} /proc/self/fd/3 "$@"`;
  return run(program, words, {
    command: ["/bin/sh", "-c", line, executablePath(program)],
    cwd: "/",
    environment: {},
  });
};

test.skipIf(lack !== undefined).each(programs)(
  "%s names HOME and the password file, and ends with 5",
  async (program) => {
    for (const words of [["list"], ["doctor"], ["run", "-c", "one", "true"]]) {
      const ended = await asNobody(program, words);
      expect(ended).toMatchObject({ status: 5, stdout: "" });
      expect(ended.stderr).toContain(
        `HOME is not set, and user ${uid} has no entry in the password file.\nSet HOME to a folder`,
      );
    }
    expect(await asNobody(program, ["--version"])).toMatchObject({ status: 0, stderr: "" });
  },
);

test.skipIf(lack !== undefined)(
  "with folders for state and cache, HOME is not needed",
  async () => {
    await using folder = await temporaryFolder();
    await chown(folder.path, uid, uid);
    const environment = { XDG_STATE_HOME: folder.path, XDG_CACHE_HOME: folder.path };
    expect(await asNobody("cluster-vm", ["list"], environment)).toMatchObject({ status: 0 });
    const checked = await asNobody("cluster-vm", ["doctor", "--output", "json"], environment);
    const { checks } = JSON.parse(checked.stdout) as {
      readonly checks: readonly { readonly name: string; readonly [field: string]: unknown }[];
    };
    const byName = new Map(checks.map((check) => [check.name, check]));
    expect(byName.get("state folder")).toMatchObject({ status: "pass" });
    expect(byName.get("ssh")).toMatchObject({
      status: "fail",
      message: expect.stringContaining(`who has no entry in the password file: No user exists for`),
      remedy: expect.stringContaining(">>/etc/passwd"),
    });
  },
);

test.skipIf(lack !== undefined)("before anything is made, create says that ssh fails", async () => {
  await using folder = await temporaryFolder();
  await chown(folder.path, uid, uid);
  const environment = { HOME: folder.path };
  const ended = await asNobody("cluster-container", ["create", "example:bare"], environment);
  expect(ended).toMatchObject({ status: 5, stdout: "" });
  expect(ended.stderr).toContain(`ssh does not work for user ${uid}`);
  expect(ended.stderr).toContain("Nothing was created.");
});
