/** What another account of this computer, or a page in one of its browsers, can do with the servers of the tests and the demo. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "ssh2";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { startCloud } from "../../local-cloud/support/sdk.ts";
import { relayTo } from "../../support/relay.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";

const opened: { current?: Awaited<ReturnType<typeof startCloud>> } = {};
const cloud = () => opened.current!.cloud;

beforeAll(async () => {
  opened.current = await startCloud({});
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());

const main = join(import.meta.dir, "..", "..", "local-cloud", "main.ts");

/** Starts a local cloud as the demo does, and resolves with what it announced and the mode of its file once it has ended. */
async function startAndEnd() {
  const directory = await mkdtemp(join(tmpdir(), "local-cloud-"));
  const child = Bun.spawn(
    [process.execPath, main, "--driver", "in-process", "--directory", directory],
    {
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  try {
    const { value } = await child.stdout.getReader().read();
    const { mode } = await stat(join(directory, "local-cloud.json"));
    return {
      mode: mode & 0o777,
      announced: JSON.parse(new TextDecoder().decode(value)) as Record<string, string>,
    };
  } finally {
    child.kill("SIGTERM");
    await child.exited;
    await rm(directory, { recursive: true });
  }
}

test("each local cloud has its own keys and token, in a file that only its user can read", async () => {
  const [one, other] = await Promise.all([startAndEnd(), startAndEnd()]);
  expect([one.mode, other.mode]).toEqual([0o600, 0o600]);
  const secrets = Object.keys(one.announced).filter((name) => /key|token/i.test(name));
  expect(secrets).toEqual(
    expect.arrayContaining([
      "accessKeyId",
      "secretAccessKey",
      "otherSecretAccessKey",
      "controlToken",
    ]),
  );
  for (const name of secrets) {
    expect(one.announced[name]?.length, name).toBeGreaterThanOrEqual(20);
    expect(one.announced[name], name).not.toBe(other.announced[name]!);
  }
});

test.each(["", "Bearer ", "Bearer another"])(
  "the control endpoint rejects the authorization %p",
  async (authorization) => {
    const response = await fetch(`${cloud().endpoint}/_control/reset`, {
      method: "POST",
      headers: { authorization },
    });
    expect(response.status).toBe(401);
  },
);

test.each(["/", "/check-address", "/_control/requests"])(
  "%s answers neither pages nor other names",
  async (path) => {
    const url = `${cloud().endpoint}${path}`;
    const { host, port } = new URL(url);
    const authorization = `Bearer ${cloud().controlToken}`;
    const status = async (headers: Readonly<Record<string, string>>): Promise<number> =>
      (await fetch(url, { headers: { authorization, ...headers } })).status;
    expect(await status({ host })).not.toBe(403);
    for (const name of [
      `localhost:${port}`,
      `attacker.example:${port}`,
      "127.0.0.1",
      `127.0.0.1:${Number(port) + 1}`,
    ])
      expect(await status({ host: name }), name).toBe(403);
    for (const origin of ["http://attacker.example", "null", cloud().endpoint])
      expect(await status({ origin }), origin).toBe(403);
  },
);

test.skipIf(machinesLack !== undefined)(
  "the SSH server of a folder machine admits its own key only",
  async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const { host, port, user } = machines.nodes[0]!.ssh;
    const login = async (
      way: { readonly password: string } | { readonly privateKey: string } | object,
    ) =>
      new Promise<string>((resolve) => {
        const client = new Client();
        client.on("ready", () => (client.end(), resolve("admitted")));
        client.on("error", ({ level }) => resolve(level ?? ""));
        client.connect({ host, port, username: user, ...way });
      });
    for (const way of [{}, { password: "" }, { privateKey: generateKeyPair("another").privateKey }])
      expect(await login(way)).toBe("client-authentication");
  },
);

const userLack =
  process.getuid?.() === 0 && Bun.which("setpriv") !== null ? undefined : "needs root and setpriv";

test.skipIf(userLack !== undefined)(
  `a port that leads to a Docker's socket leads no other user there (${userLack ?? "here"})`,
  async () => {
    await using folder = await scratchFolder();
    const socket = join(folder.path, "docker.sock");
    using _docker = Bun.listen({
      unix: socket,
      socket: { data: (client) => void client.end("root's") },
    });
    await using relay = await relayTo(socket);
    const get = `exec 3<>/dev/tcp/127.0.0.1/${relay.port}; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3`;
    const stranger = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    const answers = [[], stranger].map((as) =>
      Bun.spawn([...as, "bash", "-c", get], { cwd: "/", stdout: "pipe", stderr: "ignore" }),
    );
    const [own = "", other] = await Promise.all(answers.map(({ stdout }) => stdout.text()));
    expect(own).toContain("root's");
    expect(other).toBe("");
  },
);
