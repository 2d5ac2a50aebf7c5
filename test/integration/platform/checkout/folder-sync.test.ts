/** The folder of a platform goes to the nodes as a whole, through a real sshd, and nothing that the platform uses is swapped away. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { syncCheckoutToNode } from "../../../../src/platform/checkout/checkout-sync.ts";
import { readCheckout } from "../../../../src/platform/checkout/checkout.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import type { Layout } from "../../../../src/platform/layouts/layout.ts";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import { createFileSums } from "../../../../src/system/files/listed-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../../support/openssh-server.ts";
import { writePlatform } from "../../../support/platform-folder.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { connectTo, signal } from "../../../support/ssh-options.ts";
import { localConnection } from "./checkout-bench.ts";

interface Bench extends AsyncDisposable {
  /** The folder here, and the node's copy of it. */
  readonly source: string;
  readonly node: string;
  readonly layout: Layout;
  /** Paths of the node's files, without its directories. */
  tree(): Promise<readonly string[]>;
}

/** A node on which the platform is installed: its folder has what `install` has written, too. */
async function bench(): Promise<Bench> {
  const folder = await scratchFolder();
  const root = join(folder.path, "node");
  const node = join(root, "folder");
  const tests = { "tests/run": "#!/bin/sh\n", "tests/lib/data.txt": "data" };
  await writePlatform(node, {
    ...tests,
    "tests/lib/gone.txt": "gone",
    "data/state.db": "precious",
    "conf/generated": "precious",
  });
  await Bun.write(join(root, "version.json"), '{"variant": "none", "name": "small"}');
  return {
    source: await writePlatform(join(folder.path, "small"), { ...tests, "conf/given": "given" }),
    node,
    layout: {
      ...folderLayout(),
      versionFile: join(root, "version.json"),
      testsFolders: [join(node, "tests"), node],
    },
    tree: async () =>
      (await Bun.$`cd ${node} && find . ! -type d | LC_ALL=C sort`.text()).trim().split("\n"),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

async function send(place: Bench, connection: Connection, checksum = false) {
  const checkout = await readCheckout(place.source, signal);
  const target = {
    connection,
    reference: "agent_0",
    layouts: [place.layout],
    variant: "none",
    checksum,
    sumOf: createFileSums(),
  } as const;
  return syncCheckoutToNode(checkout.value!, target, signal);
}

const installed = [
  "./check",
  "./conf/generated",
  "./data/state.db",
  "./install",
  "./platform.yaml",
  "./tests/lib/data.txt",
  "./tests/run",
];

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  const hold: { server?: OpensshServer } = {};
  beforeAll(async () => {
    hold.server = await startOpensshServer([]);
  });
  afterAll(() => hold.server?.[Symbol.asyncDispose]());

  test("check, tests and all other files are sent; what only the node has stays outside of tests", async () => {
    await using place = await bench();
    await using connection = await connectTo(hold.server!, {});
    const before = await stat(place.node);
    await writePlatform(place.source, { check: "#!/bin/sh\nexit 1\n", "tests/__pycache__/a": "" });
    expect(await send(place, connection)).toMatchObject({ files: 6, sentFiles: 2 });
    expect(await place.tree()).toEqual([...installed, "./conf/given"].toSorted());
    expect(await readFile(join(place.node, "check"), "utf8")).toBe("#!/bin/sh\nexit 1\n");
    expect((await stat(join(place.node, "check"))).mode & 0o777).toBe(0o755);
    expect((await stat(place.node)).ino).toBe(before.ino);
    expect(await send(place, connection)).toMatchObject({ files: 6, sentFiles: 0 });
    await rm(join(place.source, "conf"), { recursive: true });
    await rm(join(place.source, "tests"), { recursive: true });
    expect(await send(place, connection)).toEqual({ files: 3, sentFiles: 0, sentBytes: 0 });
    expect(await place.tree()).toEqual(installed.filter((path) => !path.startsWith("./tests/")));
  });
});

test("a program that works in the folder goes on there, and sees each file whole", async () => {
  await using place = await bench();
  const reader = Bun.spawn(
    ["sh", "-c", "while read -r line; do cat check; echo end; done; ls conf"],
    { cwd: place.node, stdin: "pipe", stdout: "pipe" },
  );
  await writePlatform(place.source, { check: "#!/bin/sh\n# longer than before\nexit 0\n" });
  await send(place, localConnection());
  await reader.stdin.write("go\n");
  await reader.stdin.end();
  expect(await reader.stdout.text()).toBe(
    "#!/bin/sh\n# longer than before\nexit 0\nend\ngenerated\ngiven\n",
  );
});

test("nothing changes if the connection is lost while files arrive", async () => {
  await using place = await bench();
  const before = await place.tree();
  await writePlatform(place.source, { check: "#!/bin/sh\nexit 1\n", large: "x".repeat(500_000) });
  const failure = await failureOf(send(place, localConnection(300_000)));
  expect(failure).toMatchObject({ id: "transfer-failed", transient: true });
  expect(await place.tree()).toEqual(before);
  expect(await readFile(join(place.node, "check"), "utf8")).toBe("#!/bin/sh\nexit 0\n");
  expect(await send(place, localConnection())).toMatchObject({ files: 7 });
  expect(await place.tree()).toContain("./large");
});

test("a failure halfway is told, and the next sync puts it right", async () => {
  await using place = await bench();
  await writePlatform(place.source, { check: "#!/bin/sh\nexit 1\n" });
  const failing = localConnection();
  const run: Connection["run"] = async (command, inner) =>
    failing.run(
      { ...command, argv: command.argv.map((word) => word.replaceAll("mv -f -t", "false -t")) },
      inner,
    );
  expect(await failureOf(send(place, { ...failing, run }))).toMatchObject({
    id: "transfer-failed",
    message: expect.stringContaining("Some files on the node are new, others are not."),
  });
  await send(place, localConnection());
  expect(await readFile(join(place.node, "check"), "utf8")).toBe("#!/bin/sh\nexit 1\n");
});

test("folders become files, and files become folders", async () => {
  await using place = await bench();
  await writePlatform(place.source, { data: "a file", "check.d/one": "1" });
  await writePlatform(place.node, { "check.d": "a file" });
  await send(place, localConnection());
  expect(await place.tree()).toContain("./data");
  expect(await place.tree()).toContain("./check.d/one");
});

test("another platform, a checkout, and a folder that create would refuse are refused", async () => {
  await using place = await bench();
  await Bun.write(join(place.source, "platform.yaml"), 'name: other\nversion: "1"\n');
  expect(await failureOf(send(place, localConnection()))).toMatchObject({
    id: "bad-usage",
    message: `${place.source} is the platform other, but the cluster's platform is small.`,
  });
  await rm(join(place.source, "check"));
  const { problems } = await readCheckout(place.source, signal);
  expect(problems).toEqual([`${place.source}/check: is missing`]);
});
