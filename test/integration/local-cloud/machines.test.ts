/** In-process machines: real SSH servers that parse user data and answer commands from a table. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { RunInstancesCommand } from "@aws-sdk/client-ec2";
import { Client } from "ssh2";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import type { InstanceView } from "../../local-cloud/control/views.ts";
import {
  debianImage,
  eventually,
  failureOf,
  launchOf,
  startCloud,
} from "../../local-cloud/support/sdk.ts";

const opened: { current?: Awaited<ReturnType<typeof startCloud>> } = {};
const userKey = generateKeyPair("test");
const hostKey = generateKeyPair("test");

const userData = `#cloud-config
${JSON.stringify({
  ssh_keys: { ed25519_private: hostKey.privateKey, ed25519_public: hostKey.publicKey },
  users: ["default", { name: "admin", ssh_authorized_keys: [userKey.publicKey] }],
})}`;

beforeAll(async () => {
  opened.current = await startCloud({ behaviour: { bootDelayMs: 300, pendingMs: 10 } });
  opened.current.cloud.answers.replace([
    { pattern: "^hostname$", stdout: "{{hostname}}\n" },
    { pattern: "^exit (\\d+)$", status: 7, stderr: "asked for {{1}}\n" },
    { pattern: "^cat >", readsStdin: true },
    { pattern: "^rotate$", replaceHostKey: true },
  ]);
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());

/** Launches a machine, and resolves when the cloud says that it runs. Then it boots. */
async function launch(): Promise<InstanceView> {
  const { client, cloud } = opened.current!;
  const request = launchOf(await debianImage(client), {
    UserData: Buffer.from(userData).toString("base64"),
  });
  const { Instances: [launched] = [] } = await client.send(new RunInstancesCommand(request));
  const find = async () =>
    cloud.instances().find(({ instanceId }) => instanceId === launched!.InstanceId);
  return (await eventually(find, (machine) => machine?.state === "running"))!;
}

/** Launches a machine, and resolves when it accepts logins. */
async function boot(): Promise<InstanceView> {
  const machine = await launch();
  const login = async () => run(machine, "hostname", rightLogin).catch(() => undefined);
  await eventually(login, (result) => result !== undefined);
  return machine;
}

interface Login {
  readonly user: string;
  readonly privateKey: string;
  readonly expectedHostKey: string;
}

const rightLogin: Login = {
  user: "admin",
  privateKey: userKey.privateKey,
  expectedHostKey: hostKey.publicKey,
};

/** Returns the bytes of the key `ssh-ed25519 AAAA…`. */
const bytesOf = (line: string): Buffer => Buffer.from(line.split(" ")[1]!, "base64");

/** Logs in with strict checking, runs one command and returns its result. */
async function run(
  machine: InstanceView,
  command: string,
  login: Login,
  stdin = "",
): Promise<{ status: number; stdout: string; stderr: string }> {
  const client = new Client();
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    stdout: string;
    stderr: string;
  }>();
  client.on("error", reject);
  client.on("ready", () =>
    client.exec(command, (error, channel) => {
      if (error !== undefined) return reject(error);
      const result = { status: -1, stdout: "", stderr: "" };
      channel.on("data", (data: Buffer) => (result.stdout += data.toString()));
      channel.stderr.on("data", (data: Buffer) => (result.stderr += data.toString()));
      channel.on("exit", (status: number) => (result.status = status));
      channel.on("close", () => resolve(result));
      channel.end(stdin);
    }),
  );
  client.connect({
    host: machine.publicAddress!,
    port: Number(machine.sshPort),
    username: login.user,
    privateKey: login.privateKey,
    algorithms: { serverHostKey: ["ssh-ed25519"] },
    hostVerifier: (key: Buffer) => key.equals(bytesOf(login.expectedHostKey)),
  });
  return promise.finally(() => client.end());
}

test("doesn't answer until it has booted, then presents the host key of the user data and accepts the user's key", async () => {
  const machine = await launch();
  expect(await failureOf(run(machine, "hostname", rightLogin))).toMatch(/ECONNREFUSED/);
  const login = async () => run(machine, "hostname", rightLogin).catch(() => undefined);
  const booted = await eventually(login, (result) => result !== undefined);
  const expected = `ip-${machine.privateAddress.replaceAll(".", "-")}\n`;
  expect(booted).toEqual({ status: 0, stdout: expected, stderr: "" });
});

test("another key, another user and another host key are rejected", async () => {
  const machine = await boot();
  const foreign = generateKeyPair("test");
  const refusal = async (login: Partial<Login>) =>
    failureOf(run(machine, "hostname", { ...rightLogin, ...login }));
  expect(await refusal({ privateKey: foreign.privateKey })).toMatch(/authentication/);
  expect(await refusal({ user: "root" })).toMatch(/authentication/);
  expect(await refusal({ expectedHostKey: foreign.publicKey })).toMatch(/verification/);
});

test("commands are answered from the table and don't run on this computer", async () => {
  const machine = await boot();
  const asked = await run(machine, "exit 3", rightLogin);
  expect(asked).toEqual({ status: 7, stdout: "", stderr: "asked for 3\n" });
  expect(await run(machine, "cat >/tmp/x", rightLogin, "some text")).toMatchObject({ status: 0 });
  const unknown = await run(machine, "touch /tmp/never", rightLogin);
  expect(unknown).toMatchObject({
    status: 127,
    stderr: "no answer is scripted for: touch /tmp/never\n",
  });
  expect(opened.current!.cloud.answers.answered.at(-1)).toMatchObject({
    command: "touch /tmp/never",
    user: "admin",
  });
});

test("the next connection gets the new host key instead of the old one", async () => {
  const machine = await boot();
  const { stdout: newKey } = await run(machine, "rotate", rightLogin);
  expect(newKey).toStartWith("ssh-ed25519 ");
  expect(await failureOf(run(machine, "hostname", rightLogin))).toMatch(/verification/);
  expect(await run(machine, "hostname", { ...rightLogin, expectedHostKey: newKey })).toMatchObject({
    status: 0,
  });
});

test("a killed machine no longer answers", async () => {
  const machine = await boot();
  await opened.current!.cloud.kill(machine.instanceId);
  expect(await failureOf(run(machine, "hostname", rightLogin))).toMatch(/ECONNREFUSED/);
});
