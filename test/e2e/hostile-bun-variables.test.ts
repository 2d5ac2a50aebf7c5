/** Variables that control the Bun inside an executable: they are reported, and never passed on. */
import { expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { serveOnLoopback } from "../support/loopback-server.ts";
import { run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

const programs = ["cluster-cloud", "cluster-container", "cluster-vm"] as const;
const children = [
  "ssh",
  "docker",
  "podman",
  "qemu-system-x86_64",
  "qemu-system-aarch64",
  "qemu-img",
];

interface Diagnosis {
  readonly checks: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
  }[];
}

/** A folder with programs that write their environment to a file, to be put in front of the PATH. */
async function spies(
  folder: string,
): Promise<{ readonly path: string; readonly environments: () => Promise<string> }> {
  const log = join(folder, "environments");
  for (const name of children) {
    const real = Bun.which(name) ?? "/bin/false";
    await Bun.write(
      join(folder, "bin", name),
      `#!/bin/sh\necho "STARTED ${name}" >>${log}\nenv >>${log}\nexec ${real} "$@"\n`,
    );
    await chmod(join(folder, "bin", name), 0o755);
  }
  return {
    path: `${join(folder, "bin")}:${process.env["PATH"]}`,
    environments: () => Bun.file(log).text(),
  };
}

// Shows R128.
test.each(programs)(
  "%s doctor warns of variables that Bun obeys, and nothing that it starts gets them",
  async (program) => {
    await using folder = await temporaryFolder();
    const { path, environments } = await spies(folder.path);
    const environment = {
      PATH: path,
      XDG_STATE_HOME: join(folder.path, "state"),
      BUN_OPTIONS: "--smol",
      BUN_BE_BUN: "0",
      BUN_INSPECT: `ws+unix://${folder.path}/socket`,
    };
    const { stdout } = await run(program, ["doctor", "--output", "json"], { environment });
    const { checks } = JSON.parse(stdout) as Diagnosis;
    expect(checks.find(({ name }) => name === "runtime")).toMatchObject({
      status: "warn",
      message: "BUN_OPTIONS and BUN_INSPECT are set, which can make this program run other code.",
    });
    const seen = await environments();
    expect(seen).toContain("STARTED ssh");
    expect(seen).not.toMatch(/^BUN_/m);
  },
);

test.each(programs)("%s doctor finds nothing where none is set", async (program) => {
  await using folder = await temporaryFolder();
  const environment = { XDG_STATE_HOME: join(folder.path, "state") };
  const { stdout } = await run(program, ["doctor", "--output", "json"], { environment });
  const { checks } = JSON.parse(stdout) as Diagnosis;
  expect(checks.find(({ name }) => name === "runtime")?.status).toBe("pass");
});

// Bun 1.4.4 has no build option against them. When one of these fails, the check of doctor and the words in
// src/cluster/README.md can go.
test("Bun obeys them before our code runs, as the page on security says", async () => {
  await using folder = await temporaryFolder();
  const preload = join(folder.path, "preload.js");
  await Bun.write(preload, "console.log('other code')");
  const answer = async (environment: Readonly<Record<string, string>>): Promise<string> =>
    (await run("cluster-cloud", ["--version"], { environment })).stdout;
  const own = await answer({});
  expect(await answer({ BUN_OPTIONS: `--preload=${preload}` })).toBe(`other code\n${own}`);
  expect(await answer({ BUN_BE_BUN: "1" })).toBe(`${Bun.version}\n`);
  // It says where a debugger can be connected.
  const socket = join(folder.path, "socket");
  const opened: string[] = [];
  using _listener = Bun.listen({
    unix: socket,
    socket: { open: () => void opened.push("for a debugger"), data: () => {} },
  });
  const inspect = { BUN_INSPECT: "ws://127.0.0.1:0/x", BUN_INSPECT_NOTIFY: `unix://${socket}` };
  const environment = { ...inspect, XDG_STATE_HOME: folder.path };
  await run("cluster-vm", ["doctor"], { environment });
  expect(opened).toEqual(["for a debugger"]);
});

test("a variable with which Bun prints the headers of requests prints none of ours, which contain tokens", async () => {
  await using folder = await temporaryFolder();
  const asked: string[] = [];
  using server = serveOnLoopback(({ headers }) => {
    asked.push(headers.get("x-amz-security-token") ?? "");
    return new Response("", { status: 400 });
  });
  const environment = {
    XDG_STATE_HOME: folder.path,
    AWS_ENDPOINT_URL_EC2: `http://127.0.0.1:${server.port}`,
    CLOUD_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE",
    CLOUD_SECRET_ACCESS_KEY: "secret-of-mine",
    CLOUD_SESSION_TOKEN: "token-of-mine",
    BUN_CONFIG_VERBOSE_FETCH: "curl",
  };
  const words = ["list", "--cloud-region", "us-west-2"];
  const { stdout, stderr } = await run("cluster-cloud", words, { environment });
  expect(asked).toContain("token-of-mine");
  expect(stdout + stderr).not.toContain("token-of-mine");
  const url = `http://me:secret-of-mine@127.0.0.1:${server.port}/artifact.sh`;
  const create = ["create", "--dry-run", "--artifact-sha256", "0".repeat(64), url];
  const downloading = await run("cluster-container", create, { environment });
  expect(downloading.stderr).not.toMatch(/authorization/i);
});
