/** `run` and an SSH server that punishes connections without a login, as OpenSSH does from 9.8 on. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { closeMasterConnections } from "../../../src/ssh/session/master-connection.ts";
import { freePort } from "../../support/free-port.ts";
import { makeFolderFor } from "../../support/openssh-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { type Gate, startGate } from "../../support/ssh-gate.ts";
import { runOnNode } from "./run-on-node.ts";

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly fetched: string | undefined;
  /** Logins that began and did not end well, as sshd's log has them. */
  readonly withoutLogin: readonly string[];
  readonly logins: number;
}

interface Given {
  readonly turnsAway?: (connection: number) => boolean;
  /** The ports of masters, given that of the gate; default: the gate alone. */
  readonly ports?: (gate: Gate) => readonly [number, ...number[]];
  readonly fetches?: boolean;
  readonly times?: number;
}

/** Passes stdin to a command on the first master, and fetches the file that it writes. */
async function run({
  turnsAway = () => false,
  ports,
  fetches = false,
  times = 1,
}: Given): Promise<Ran> {
  await using scratch = await scratchFolder();
  await using server = await startOpensshServer([]);
  await using gate = await startGate(server.port, turnsAway);
  const directory = join(scratch.path, "state");
  const [port, ...otherPorts] = ports?.(gate) ?? [gate.port];
  await makeFolderFor(server, directory, [port, ...otherPorts]);
  const result = join(scratch.path, "result");
  const local = join(scratch.path, "fetched");
  const request = {
    directory,
    port,
    otherPorts,
    words: [`cat; echo saved >'${result}'; exit 7`],
    fetches: fetches ? [{ remote: result, local }] : [],
  };
  const runOnce = async () => runOnNode(request, new Blob(["given\n"]));
  let last = await runOnce();
  for (let done = 1; done < times; done += 1) last = await runOnce();
  await closeMasterConnections(directory, process.env);
  const log = await server.log();
  return {
    ...last,
    fetched: await readFile(local, "utf8").catch(() => undefined),
    withoutLogin: log
      .split("\n")
      .filter((line) => /(?:closed|reset|Disconnected).*\[preauth\]/.test(line)),
    logins: log.split("Accepted publickey").length - 1,
  };
}

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  test("a command waits until the server accepts connections again, and gets all of its input once", async () => {
    const ran = await run({ turnsAway: (connection) => connection <= 3 });
    expect(ran).toMatchObject({ status: 7, stdout: "given\n", withoutLogin: [] });
  });

  test("a file is fetched although the server turns this computer away after the command", async () => {
    const ran = await run({
      turnsAway: (connection) => connection > 1 && connection <= 5,
      fetches: true,
    });
    expect(ran).toMatchObject({ status: 7, stdout: "given\n", fetched: "saved\n" });
  });

  test("on several masters, no connection ends without a login, shared logins included", async () => {
    const ports = ({ port }: Gate) => [port, port, port] as const;
    const ran = await run({ ports, times: 3 });
    expect(ran).toMatchObject({ status: 7, stdout: "given\n", stderr: "", withoutLogin: [] });
  });

  test("if the first master turns this computer away, the command runs there or on another one, once", async () => {
    const ports = ({ port }: Gate) => [port, port] as const;
    const ran = await run({ ports, turnsAway: (connection) => connection <= 2 });
    expect(ran).toMatchObject({ status: 7, stdout: "given\n" });
  });

  test("a first master that refuses connections leaves the command, and its input, to another one", async () => {
    const closed = await freePort();
    const ran = await run({ ports: ({ port }) => [closed, port], fetches: true });
    expect(ran).toMatchObject({ status: 7, stdout: "given\n", fetched: "saved\n" });
  });

  test("a first master that says nothing leaves the command, and its input, to another one", async () => {
    const silent = createServer((socket) => void socket.on("error", () => {})).listen(
      0,
      "127.0.0.1",
    );
    await once(silent, "listening");
    const { port: first } = silent.address() as AddressInfo;
    const ran = await run({ ports: ({ port }) => [first, port], fetches: true });
    silent.close();
    expect(ran).toMatchObject({ status: 7, stdout: "given\n", fetched: "saved\n" });
  });

  test("masters that all refuse connections are named", async () => {
    const ran = await run({ ports: () => [1, 1] });
    expect(ran.status).not.toBe(0);
    expect(ran.stderr).toContain("None of master_0, master_1 answers over SSH.");
  });
});
