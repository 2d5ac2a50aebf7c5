/** What a node says reaches nobody before the cluster's secrets are known, even where they are read slowly. */

import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { openMaskedConnections } from "../../../src/cluster/connections.ts";
import { LineProgress } from "../../../src/library/runtime.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { type FolderMachine, machinesLack, startMachines } from "../../support/install-machine.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

const signal = neverAborted;
const hash = "$6$rounds=656000$salt$0123456789abcdefghij";

/** The secrets are sent through base64, which waits here until it may go on. */
const base64 = `#!/bin/sh
until [ -e "$MACHINE/run/go" ] || [ ! -d "$MACHINE" ]; do sleep 0.02; done
exec /usr/bin/base64 "$@"
`;

/** Fails to read the secrets, whose script comes on stdin, as long as the machine counts as broken. The command itself begins. */
const sh = `#!/bin/sh
[ "$1" != -s ] || [ ! -e "$MACHINE/run/broken" ] || exit 1
exec /bin/sh "$@"
`;

const configuration = "var/lib/cluster-e2e/installer/genconf/config.yaml";
const status = "var/lib/cluster-e2e/install.status";
/** A secret of the layout dcos. */
const token = "var/lib/dcos/dcos-oauth/auth-token-secret";

async function start() {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master", "agent"], programs: { base64, sh } });
  const directory = join(scratch.path, "cluster");
  await machines.openTo(directory);
  const [master, agent] = [machines.machines[0]!, machines.machines[1]!];
  await master.write(configuration, `superuser_password_hash: "${hash}"\n`);
  await master.write(status, "exit 0\n");
  const lines: string[] = [];
  const progress = new LineProgress((line) => lines.push(line));
  // Only the first master knows the secrets, wherever it is in the list.
  const nodes = machines.nodes.toReversed();
  const cluster = { ...exampleCluster(nodes, "enterprise"), directory };
  const connections = openMaskedConnections(cluster, { clock: systemClock, progress });
  return {
    master,
    agent,
    connections,
    progress,
    lines,
    hasRun: (node: typeof master, name: string) => existsSync(join(node.folder, "run", name)),
    [Symbol.asyncDispose]: async () => {
      await master.write("run/go", "");
      await connections[Symbol.asyncDispose]();
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const secretsRead = ({ commands }: FolderMachine): number =>
  commands.filter((command) => command.includes("e2e-secrets")).length;

const saying = (name: string) => ({
  argv: ["sh", "-c", `: >"$MACHINE/run/${name}"; echo '${hash}'`],
});

describe.skipIf(machinesLack !== undefined)("before the secrets are known", () => {
  test("a command whose output is hidden runs, but its result waits", async () => {
    await using given = await start();
    const results = [given.master, given.agent].map(async (node) => {
      const connection = await given.connections.connect(node.node, signal);
      const { stdout } = await connection.run(
        { ...saying("hidden"), isOutputHidden: true },
        signal,
      );
      return [stdout.trim(), given.progress.mask(hash)];
    });
    for (const node of [given.master, given.agent])
      await until("it ran", () => given.hasRun(node, "hidden"));
    expect(given.progress.mask(hash)).toBe(hash);
    await given.master.write("run/go", "");
    expect(await Promise.all(results)).toEqual([
      [hash, "***"],
      [hash, "***"],
    ]);
  });

  test("a command whose output is shown doesn't begin", async () => {
    await using given = await start();
    const connection = await given.connections.connect(given.agent.node, signal);
    const shown = connection.run(saying("shown"), signal);
    const followed = connection.run(
      { ...saying("followed"), isOutputHidden: true, onOutput: () => {} },
      signal,
    );
    const hidden = connection.run({ ...saying("hidden"), isOutputHidden: true }, signal);
    await until("it ran", () => given.hasRun(given.agent, "hidden"));
    expect(given.hasRun(given.agent, "shown")).toBe(false);
    expect(given.hasRun(given.agent, "followed")).toBe(false);
    await given.master.write("run/go", "");
    await Promise.all([shown, followed, hidden]);
    expect(given.hasRun(given.agent, "shown")).toBe(true);
    expect(given.lines.join("\n")).not.toContain("0123456789abcdefghij");
  });

  test("no file is sent, because the node may say why it refuses it", async () => {
    await using given = await start();
    const connection = await given.connections.connect(given.agent.node, signal);
    const sent = connection.upload(
      { text: "hello" },
      { path: "/var/lib/sent", mode: 0o600 },
      signal,
    );
    const hidden = connection.run({ ...saying("hidden"), isOutputHidden: true }, signal);
    await until("it ran", () => given.hasRun(given.agent, "hidden"));
    expect(given.agent.commands.filter((command) => command.includes("e2e-receive"))).toEqual([]);
    await given.master.write("run/go", "");
    await Promise.all([sent, hidden]);
    expect(await given.agent.read("var/lib/sent")).toBe("hello");
  });
});

describe.skipIf(machinesLack !== undefined)("a question", () => {
  const asked = async (given: Awaited<ReturnType<typeof start>>, isQuoted: boolean) => {
    const connection = await given.connections.forQuestions.connect(given.master.node, signal);
    const hidden = { ...saying("asked"), isOutputHidden: true, isQuoted: () => isQuoted };
    return (await connection.run(hidden, signal)).stdout.trim();
  };

  test("whose answer nobody will see reads no secrets", async () => {
    await using given = await start();
    expect(await asked(given, false)).toBe(hash);
    expect(secretsRead(given.master)).toBe(0);
  });

  test("whose answer users will see is answered only once the secrets are known, which are read afterwards", async () => {
    await using given = await start();
    await given.master.write("run/go", "");
    await given.master.write(status, "running\n");
    for (const reads of [1, 2]) {
      await rm(join(given.master.folder, "run/asked"), { force: true });
      expect(await asked(given, true)).toBe(hash);
      expect(secretsRead(given.master)).toBe(reads);
      expect(given.progress.mask(hash)).toBe("***");
    }
  });

  test("that shows its output waits for the secrets first", async () => {
    await using given = await start();
    const connection = await given.connections.forQuestions.connect(given.agent.node, signal);
    const shown = connection.run(saying("shown"), signal);
    await until("the secrets are asked for", () => secretsRead(given.master) === 1);
    expect(given.hasRun(given.agent, "shown")).toBe(false);
    await given.master.write("run/go", "");
    await shown;
    expect(given.lines.join("\n")).not.toContain("0123456789abcdefghij");
  });

  test("is followed by the secrets that are new where something else will be seen", async () => {
    await using given = await start();
    await given.master.write("run/go", "");
    await asked(given, false);
    await given.connections.readNew();
    expect(given.progress.mask(hash)).toBe("***");
    await given.connections.readNew();
    expect(secretsRead(given.master)).toBe(1);
  });
});

test.skipIf(machinesLack !== undefined)(
  "closing the connections ends a command that waits for the secrets",
  async () => {
    await using given = await start();
    const connection = await given.connections.connect(given.agent.node, signal);
    const waiting = failureOf(connection.run(saying("shown"), signal));
    await until("the secrets are asked for", () => secretsRead(given.master) === 1);
    await given.connections[Symbol.asyncDispose]();
    expect(await waiting).toMatchObject({ id: "connection-failed" });
    expect(given.hasRun(given.agent, "shown")).toBe(false);
  },
);

describe.skipIf(machinesLack !== undefined)("secrets that can't be read at first", () => {
  test.each([
    [
      "because the platform is not configured yet",
      undefined,
      async ({ remove }: Later) => remove(configuration),
    ],
    [
      "because the first master fails",
      /^Cannot read .*status 1/,
      async ({ write }: Later) => write("run/broken", ""),
    ],
  ])("%s are masked once they can be", async (_, problem, prevent) => {
    await using given = await start();
    const { master, agent, connections, progress } = given;
    await master.write("run/go", "");
    const text = await master.read(configuration);
    await prevent({ write: master.write, remove: async (path) => rm(join(master.folder, path)) });
    const other = await connections.connect(agent.node, signal);
    expect((await other.run(saying("first"), signal)).stdout.trim()).toBe(hash);
    expect(progress.mask(hash)).toBe(hash);
    if (problem === undefined) expect(connections.problem()).toBeUndefined();
    else expect(connections.problem()).toMatch(problem);
    await master.write(configuration, text);
    await rm(join(master.folder, "run/broken"), { force: true });
    const first = await connections.connect(master.node, signal);
    await first.run(saying("second"), signal);
    expect(progress.mask(hash)).toBe("***");
    expect(connections.problem()).toBeUndefined();
  });

  test("keep the first master's own text back", async () => {
    await using given = await start();
    const { master, connections } = given;
    await master.write("run/go", "");
    await master.write("run/broken", "");
    const unused = await connections.connect(master.node, signal);
    await failureOf(unused.run(saying("first"), signal));
    const connection = await connections.connect(master.node, signal);
    await until("the secrets were asked for again", () => secretsRead(master) === 2);
    expect(await failureOf(connection.run(saying("second"), signal))).toMatchObject({
      id: "remote-command-failed",
    });
    expect(given.hasRun(master, "second")).toBe(false);
  });

  test("are read once, whatever is run later", async () => {
    await using given = await start();
    const { master, agent, connections } = given;
    await master.write("run/go", "");
    for (const node of [agent, master, agent, master]) {
      await (await connections.connect(node.node, signal)).run(saying("any"), signal);
    }
    expect(secretsRead(master)).toBe(1);
  });

  test("are read again until the installation on the first master has ended, and when an error is about to be shown", async () => {
    await using given = await start();
    const { master, connections, progress } = given;
    await master.write("run/go", "");
    await master.write(status, "running\n");
    const use = async (): Promise<unknown> =>
      (await connections.connect(master.node, signal)).run(saying("any"), signal);
    await use();
    await master.write(token, "made-by-the-installation\n");
    await use();
    expect(progress.mask("made-by-the-installation")).toBe("***");
    await master.write(status, "exit 0\n");
    await use();
    await use();
    expect(secretsRead(master)).toBe(3);
    await master.write(token, "made-by-a-service\n");
    await connections.readAgain();
    expect(progress.mask("made-by-a-service")).toBe("***");
  });
});

test.skipIf(machinesLack !== undefined)(
  "a file of secrets that can't be masked is named in one warning",
  async () => {
    await using given = await start();
    const { master, connections, lines } = given;
    await master.write("run/go", "");
    await master.write(status, "running\n");
    await master.write("opt/cluster-platform/secret-files", `${master.folder}/keys\n/etc/later\n`);
    await master.write("keys", "x".repeat(64_001));
    for (let uses = 0; uses < 3; uses += 1)
      await (await connections.connect(master.node, signal)).run(saying("any"), signal);
    expect(secretsRead(master)).toBe(3);
    expect(lines.filter((line) => line.includes("not masked"))).toEqual([
      expect.stringContaining("/keys on the first master are not masked: it is longer"),
    ]);
  },
);

interface Later {
  readonly write: (path: string, text: string) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
}

test.skipIf(machinesLack !== undefined)(
  "secrets that the platform has created are read again until its installation has ended",
  async () => {
    await using given = await start();
    const { master, connections, progress } = given;
    await master.write("run/go", "");
    await master.write(status, "running\n");
    await connections.connect(master.node, signal);
    await connections.readNew();
    const later = "abcdefghij0123456789";
    await master.write(configuration, `superuser_password_hash: "${later}"\n`);
    await connections.readNew();
    expect(progress.mask(later)).toBe("***");
    await master.write(status, "exit 0\n");
    await connections.readNew();
    const reads = secretsRead(master);
    await connections.readNew();
    expect(secretsRead(master)).toBe(reads);
  },
);

test.skipIf(machinesLack !== undefined)(
  "secrets that a busy node is slow to tell are asked for once, and known although nobody has waited so long",
  async () => {
    await using given = await start();
    const { master, connections, progress } = given;
    // Both give up after five seconds.
    await Promise.all([connections.readAgain(), connections.readAgain()]);
    expect(secretsRead(master)).toBe(1);
    expect(progress.mask(hash)).toBe(hash);
    await master.write("run/go", "");
    await until("the secrets are known", () => progress.mask(hash) === "***");
  },
);
