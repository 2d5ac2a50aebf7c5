/** In-process machines: real SSH servers that parse user data and answer commands from a table. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { RunInstancesCommand } from "@aws-sdk/client-ec2";
import { Client } from "ssh2";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import type { InstanceView } from "../../local-cloud/control/views.ts";
import { debianImage, eventually, failureOf, launchOf, startCloud } from "../../local-cloud/support/sdk.ts";

const opened: { current?: Awaited<ReturnType<typeof startCloud>>; machine?: InstanceView } = {};
const userKey = generateKeyPair("test");
const hostKey = generateKeyPair("test");

const userData = `#cloud-config
${JSON.stringify({
  ssh_keys: { ed25519_private: hostKey.privateKey, ed25519_public: hostKey.publicKey },
  users: ["default", { name: "admin", ssh_authorized_keys: [userKey.publicKey] }],
})}`;

beforeAll(async () => {
  opened.current = await startCloud({ behaviour: { bootDelayMs: 100, pendingMs: 10 } });
  const { client, cloud } = opened.current;
  cloud.answers.replace([
    { pattern: "^hostname$", stdout: "{{hostname}}\n" },
    { pattern: "^exit (\\d+)$", status: 7, stderr: "asked for {{1}}\n" },
    { pattern: "^cat >", readsStdin: true },
    { pattern: "^rotate$", replaceHostKey: true },
  ]);
  const launch = launchOf(await debianImage(client), { UserData: Buffer.from(userData).toString("base64") });
  await client.send(new RunInstancesCommand(launch));
  const machines = async () => cloud.instances();
  opened.machine = (await eventually(machines, ([one]) => one?.state === "running"))[0]!;
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());

interface Login {
  readonly user: string;
  readonly privateKey: string;
  readonly expectedHostKey: string;
}

const rightLogin: Login = { user: "admin", privateKey: userKey.privateKey, expectedHostKey: hostKey.publicKey };

/** Returns the bytes of the key `ssh-ed25519 AAAA…`. */
const bytesOf = (line: string): Buffer => Buffer.from(line.split(" ")[1]!, "base64");

/** Logs in with strict checking, runs one command and returns its result. */
async function run(
  command: string,
  stdin: string,
  login: Login,
): Promise<{ status: number; stdout: string; stderr: string }> {
  const client = new Client();
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; stdout: string; stderr: string }>();
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
    host: opened.machine!.publicAddress!,
    port: Number(opened.machine!.sshPort),
    username: login.user,
    privateKey: login.privateKey,
    algorithms: { serverHostKey: ["ssh-ed25519"] },
    hostVerifier: (key: Buffer) => key.equals(bytesOf(login.expectedHostKey)),
  });
  return promise.finally(() => client.end());
}

test("doesn't answer until it has booted, then presents the host key of the user data and accepts the user's key", async () => {
  expect(await failureOf(run("hostname", "", rightLogin))).toMatch(/ECONNREFUSED/);
  const login = async () => run("hostname", "", rightLogin).catch(() => undefined);
  const booted = await eventually(login, (result) => result !== undefined);
  const expected = `ip-${opened.machine!.privateAddress.replaceAll(".", "-")}\n`;
  expect(booted).toEqual({ status: 0, stdout: expected, stderr: "" });
});

test("another key, another user and another host key are rejected", async () => {
  const foreign = generateKeyPair("test");
  expect(await failureOf(run("hostname", "", { ...rightLogin, privateKey: foreign.privateKey }))).toMatch(
    /authentication/,
  );
  expect(await failureOf(run("hostname", "", { ...rightLogin, user: "root" }))).toMatch(/authentication/);
  expect(await failureOf(run("hostname", "", { ...rightLogin, expectedHostKey: foreign.publicKey }))).toMatch(
    /verification/,
  );
});

test("commands are answered from the table and don't run on this machine", async () => {
  expect(await run("exit 3", "", rightLogin)).toEqual({ status: 7, stdout: "", stderr: "asked for 3\n" });
  expect(await run("cat >/tmp/x", "some text", rightLogin)).toMatchObject({ status: 0 });
  const unknown = await run("touch /tmp/never", "", rightLogin);
  expect(unknown).toMatchObject({ status: 127, stderr: "no answer is scripted for: touch /tmp/never\n" });
  expect(opened.current!.cloud.answers.answered.at(-1)).toMatchObject({ command: "touch /tmp/never", user: "admin" });
});

test("the next connection gets the new host key instead of the old one", async () => {
  const { stdout: newKey } = await run("rotate", "", rightLogin);
  expect(newKey).toStartWith("ssh-ed25519 ");
  expect(await failureOf(run("hostname", "", rightLogin))).toMatch(/verification/);
  expect(await run("hostname", "", { ...rightLogin, expectedHostKey: newKey })).toMatchObject({ status: 0 });
});

test("a killed machine no longer answers", async () => {
  await opened.current!.cloud.kill(opened.machine!.instanceId);
  expect(await failureOf(run("hostname", "", rightLogin))).toMatch(/ECONNREFUSED/);
});
