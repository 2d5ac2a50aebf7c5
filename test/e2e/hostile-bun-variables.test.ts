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
      BUN_INSPECT_NOTIFY: `unix://${folder.path}/socket`,
    };
    const { stdout } = await run(program, ["doctor", "--output", "json"], { environment });
    const { checks } = JSON.parse(stdout) as Diagnosis;
    expect(checks.find(({ name }) => name === "runtime")).toMatchObject({
      status: "warn",
      message: "BUN_OPTIONS and BUN_INSPECT_NOTIFY are set, which change how this program runs.",
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

test.each(programs)(
  "%s runs no code that a variable of Bun's names, and nobody can debug it",
  async (program) => {
    await using folder = await temporaryFolder();
    const at = (name: string): string => join(folder.path, name);
    await Bun.write(
      at("other.js"),
      `require("node:fs").writeFileSync(${JSON.stringify(at("ran"))}, "")`,
    );
    await Bun.write(at("bunfig.toml"), `preload = [${JSON.stringify(at("other.js"))}]\n`);
    const opened: string[] = [];
    using _listener = Bun.listen({
      unix: at("socket"),
      socket: { open: () => void opened.push("for a debugger"), data: () => {} },
    });
    const notify = { BUN_INSPECT_NOTIFY: `unix://${at("socket")}` };
    const answer = async (variables: Readonly<Record<string, string>>) => {
      const environment = { ...variables, XDG_STATE_HOME: at("state") };
      const { status, stdout, stderr } = await run(program, ["completion", "bash"], {
        environment,
      });
      return { status, printed: stdout !== "", stderr: stderr.split("\n")[0] };
    };
    const refused = (stderr: string) => ({ status: 1, printed: false, stderr });
    const noCode = refused("EvalError: Code generation from strings disallowed for this context");
    for (const option of ["--preload", "--import", "--require"])
      expect(await answer({ BUN_OPTIONS: `${option}=${at("other.js")}` })).toEqual(noCode);
    expect(await answer({ BUN_OPTIONS: `--config=${at("bunfig.toml")}` })).toEqual(noCode);
    expect(await answer({ BUN_INSPECT_PRELOAD: at("other.js") })).toEqual(noCode);
    expect(await answer({ BUN_INSPECT: "ws://127.0.0.1:0/x", ...notify })).toEqual(
      refused(expect.stringMatching(/^error: BUN_INSPECT cannot be used with /)),
    );
    const weaker = "--disallow-code-generation-from-strings";
    for (const options of ["--inspect=127.0.0.1:0", "--inspect-wait=127.0.0.1:0", weaker])
      expect(await answer({ BUN_OPTIONS: options, ...notify })).toMatchObject({ status: 0 });
    // Editors set it in all of their terminals.
    expect(await answer({ BUN_INSPECT_CONNECT_TO: at("socket") })).toEqual({
      status: 0,
      printed: true,
      stderr: expect.stringMatching(/^warn: BUN_INSPECT_CONNECT_TO is ignored /),
    });
    expect({ opened, hasRun: await Bun.file(at("ran")).exists() }).toEqual({
      opened: [],
      hasRun: false,
    });
  },
);

// No build option of Bun 1.4.4 is against it. When this fails, its words in src/cluster/README.md can go.
test("Bun obeys BUN_BE_BUN before our code runs, as the page on security says", async () => {
  const { stdout } = await run("cluster-cloud", ["--version"], {
    environment: { BUN_BE_BUN: "1" },
  });
  expect(stdout).toBe(`${Bun.version}\n`);
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

test("a variable that makes Bun accept any certificate does not: nobody else gets a request", async () => {
  await using folder = await temporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  const words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split(" ");
  await Bun.$`openssl ${words} -keyout ${at("key")} -out ${at("certificate")}`.quiet();
  const asked: string[] = [];
  const answer = ({ url }: Request): Response => {
    asked.push(url);
    return new Response("#!/bin/bash\n# variant: oss\n");
  };
  const tls = { key: Bun.file(at("key")), cert: Bun.file(at("certificate")) };
  using server = serveOnLoopback(answer, { tls });
  const url = `https://127.0.0.1:${server.port}`;
  const environment = {
    XDG_STATE_HOME: at("state"),
    NODE_TLS_REJECT_UNAUTHORIZED: "0",
    AWS_ENDPOINT_URL_EC2: url,
    CLOUD_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE",
    CLOUD_SECRET_ACCESS_KEY: "secret-of-mine",
  };
  const list = ["list", "--cloud-region", "us-west-2"];
  const create = ["create", "--dry-run", "--variant", "oss", `${url}/artifact.sh`];
  const ended = [
    await run("cluster-cloud", list, { environment }),
    await run("cluster-container", create, { environment }),
  ];
  for (const { status, stderr } of ended)
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/certificate/) });
  expect(asked).toEqual([]);
});
