/** Parts of scripts/setup, each in a shell of its own. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";

const setup = await Bun.file(join(import.meta.dir, "..", "..", "..", "scripts", "setup")).text();

/** The text of this function. */
const part = (name: string): string =>
  new RegExp(`^${name}\\(\\) \\{.*?^\\}\\n`, "ms").exec(setup)![0];

async function sh(lines: string, cwd: string) {
  const child = Bun.spawn(["sh", "-euc", lines], { cwd, stdout: "pipe", stderr: "pipe" });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status, stdout, stderr };
}

test.each([
  ["ID=debian\nVERSION_CODENAME=bookworm\n", "docker.io\n"],
  ["VERSION_CODENAME=trixie\nID=debian\n", "docker.io docker-cli\n"],
  ["ID=debian\n", "docker.io docker-cli\n"],
  ["ID=ubuntu\nVERSION_CODENAME=noble\nID_LIKE=debian\n", "docker.io\n"],
])(
  "Docker's program is installed where it is a package of its own: %j",
  async (release, expected) => {
    await using folder = await scratchFolder();
    await Bun.write(join(folder.path, "os-release"), release);
    const { stdout } = await sh(
      `${part("docker_packages")}docker_packages os-release`,
      folder.path,
    );
    expect(stdout).toBe(expected);
  },
);

test("what takes minutes prints a line of its output now and then, and keeps all of it", async () => {
  await using folder = await scratchFolder();
  // A clock on which ten seconds pass with every line.
  const lines = `say() { echo "$*"; }; date() { printf x >>clock; echo $(($(wc -c <clock) * 10)); }\n${part("logged")}`;
  const good = await sh(`${lines}logged log printf 'one\\ntwo\\n'`, folder.path);
  expect(good).toMatchObject({ status: 0, stdout: "  one\n  two\n" });
  expect(await Bun.file(join(folder.path, "log")).text()).toBe("one\ntwo\n");
  const bad = await sh(`${lines}logged log sh -c 'echo bad; exit 100'`, folder.path);
  expect(bad.status).toBe(1);
  expect(await Bun.file(join(folder.path, "log")).text()).toContain("bad\nexit status 100\n");
});

test("a server that the tests need is not started by its package, and stays disabled, also where apt fails", async () => {
  await using folder = await scratchFolder();
  const lines = `say() { :; }; systemctl() { echo "$@" >>calls; }; masked=
${part("mask_services")}${part("unmask_services")}mask_services a.service a.socket; unmask_services; unmask_services`;
  await sh(lines, folder.path);
  expect(await Bun.file(join(folder.path, "calls")).text()).toBe(
    ["mask", "unmask", "disable"].map((verb) => `${verb} a.service a.socket\n`).join(""),
  );
  expect(part("clean")).toContain("\n  unmask_services\n");
});
