/** Faults that meet the commands on a cluster that is there: of its files on this computer, of its nodes, of the way to them. */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import { newHostKey } from "../../local-cloud/machines/scripted-answers.ts";
import type { Expected, Fault, Struck } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, struck } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const run = ["run", "-c", "faulty", "--no-test-env", "true"] as const;
const wait = ["wait", "-c", "faulty", "--timeout", "60s"] as const;
const sync = ["sync", "-c", "faulty", "checkout"] as const;

const kept = (id: string, says: string | RegExp, status = 1): Expected => ({
  status,
  id,
  says: [says],
  keepsCluster: true,
  withinMs: 90_000,
});

const onCluster = (
  name: string,
  words: readonly string[],
  strike: (world: CloudWorld) => Promise<Struck>,
  expected: Expected,
): CloudFault => ({
  name,
  place: "machine",
  seconds: 10,
  needsCluster: true,
  strike,
  act: async (world) => {
    await Bun.write(
      join(world.folder, "checkout/packages/integration-test/extra/test_one.py"),
      "x = 1\n",
    );
    return world.run(words);
  },
  expected,
});

/** The file of the cluster's folder on this computer, with another text; without one, it is removed. */
const withFile =
  (name: string, change: (text: string) => string | undefined) =>
  async (world: CloudWorld): Promise<Struck> => {
    const place = join(world.stateFolder, "cluster-e2e/cloud/us-west-2");
    const [folder = ""] = (await readdir(place)).filter((entry) => entry.startsWith("faulty-"));
    const path = join(place, folder, name);
    const former = await readFile(path, "utf8");
    const text = change(former);
    await (text === undefined ? rm(path) : writeFile(path, text));
    return struck(async () => writeFile(path, former, { mode: 0o600 }));
  };

const otherHostKey = (text: string): string =>
  text.replaceAll(
    /AAAA\S+/g,
    "AAAAC3NzaC1lZDI1NTE5AAAAIHVzZWQgYnkgbm9ib2R5IGJ1dCB0aGlzIHRhYmxlIHJv",
  );

/** `run` has begun to connect by then, so that its own failure is 255. */
const unusableKey = (command: "run" | "sync"): Expected => ({
  ...kept("key-missing", /id_ed25519 .*\n *The file was damaged/, command === "run" ? 255 : 5),
  hides: ["refused the login", "Load key", "created on another computer"],
});

const keys: readonly CloudFault[] = [
  onCluster("the host key changed, then run", run, withFile("known_hosts", otherHostKey), {
    ...kept("host-key-changed", "host key other than the pinned one", 255),
    hides: ["ssh-keygen", "Offending"],
  }),
  onCluster(
    "the host key changed, then sync",
    sync,
    withFile("known_hosts", otherHostKey),
    kept("host-key-changed", "host key other than the pinned one"),
  ),
  ...(
    [
      ["run", run],
      ["sync", sync],
    ] as const
  ).flatMap(([command, words]) => [
    onCluster(
      `the key has no bytes, then ${command}`,
      words,
      withFile("id_ed25519", () => ""),
      unusableKey(command),
    ),
    onCluster(
      `the key is garbage, then ${command}`,
      words,
      withFile("id_ed25519", () => "garbage\n"),
      unusableKey(command),
    ),
    onCluster(
      `the key is missing, then ${command}`,
      words,
      withFile("id_ed25519", () => undefined),
      kept("key-missing", "id_ed25519", 5),
    ),
    onCluster(
      `the key is another's, then ${command}`,
      words,
      withFile("id_ed25519", () => newHostKey()),
      kept(
        "connection-failed",
        command === "run" ? "log in" : "refused the login",
        command === "run" ? 255 : 1,
      ),
    ),
  ]),
];

const failing = (log: string): ScriptedAnswer => ({
  pattern: "e2e-readiness",
  stdout: `layout=cluster\nstatus=exit 7\nunit=failed\n${log}\n`,
  readsStdin: true,
});

/** The first master tells what to mask, and the installer's log has it. */
async function printingSecrets(world: CloudWorld): Promise<Struck> {
  const { license, passwordHash: hash } = world;
  const configuration = `license_key_contents: "${license}"\nsuperuser_password_hash: "${hash}"\n`;
  const encoded = Buffer.from(configuration).toString("base64");
  return answering(
    { pattern: "e2e-secrets", stdout: `configuration ${encoded}\n`, readsStdin: true },
    failing(`log=using ${license} and ${hash}`),
  )(world);
}

const waits: readonly CloudFault[] = [
  onCluster(
    "the installer prints secrets, then wait",
    wait,
    printingSecrets,
    kept("install-failed", "using ***"),
  ),
  onCluster(
    "the installer's last line has 50 MB, then wait",
    wait,
    answering(
      { ...failing(`log=${"x".repeat(64_000)}`), stdinHas: 'tail -c "$TAIL_BYTES" "$LOG_FILE"' },
      failing(`log=${"x".repeat(50_000_000)}`),
    ),
    kept("install-failed", "status 7"),
  ),
  onCluster(
    "the installer's log turns the text around, then wait",
    wait,
    answering(failing("log=nothing \u202Eworks")),
    { ...kept("install-failed", "works"), hides: ["\u202E"] },
  ),
  onCluster(
    "the nodes answer with garbage, then wait",
    [...wait.slice(0, -1), "5s"],
    answering({ pattern: "e2e-readiness", stdout: "\u0000\u0001garbage", readsStdin: true }),
    kept("deadline-passed", "master_0", 4),
  ),
  onCluster(
    "the nodes do not answer, then wait",
    [...wait.slice(0, -1), "5s"],
    answering({ pattern: "e2e-readiness", delayMs: 600_000 }),
    kept("deadline-passed", "master_0", 4),
  ),
];

const installing: ScriptedAnswer = {
  pattern: "e2e-readiness",
  stdout: "layout=cluster\nstatus=running\nunit=active\n",
  readsStdin: true,
};

/** They have said why they are not ready, and that stays the reason. */
const silentAtTheEnd: CloudFault = {
  ...onCluster("the nodes fall silent before the limit, then wait", wait, answering(installing), {
    ...kept("deadline-passed", /Error: [^]*the installer is running/, 4),
    hides: [/Error: [^]*does not answer/],
  }),
  act: async (world) => {
    const running = world.start([...wait.slice(0, -1), "8s"]);
    await running.said("the installer is running");
    await answering({ pattern: "e2e-readiness", delayMs: 600_000 })(world);
    return running.ended;
  },
};

const syncs: readonly CloudFault[] = [
  onCluster(
    "the state of the tests cannot be read, then sync",
    sync,
    answering({ pattern: "e2e-sync-state", status: 2, stderr: "Input/output error\n" }),
    kept("remote-command-failed", "Input/output error"),
  ),
  onCluster(
    "the disk is full, then sync",
    sync,
    answering(
      {
        pattern: "e2e-sync-state",
        stdout: '# layout cluster\n# version\n{"variant":"enterprise","version":"1"}\n# tests\n',
      },
      { pattern: "tar -x", status: 12, stderr: "tar: No space left on device\n", readsStdin: true },
    ),
    kept("transfer-failed", "no space is left on its disk"),
  ),
];

const exists = onCluster(
  "the cluster exists, then create",
  [],
  async () => struck(() => {}),
  kept("cluster-exists", "exists"),
);

export const clusterFaults: readonly CloudFault[] = [
  ...keys,
  ...waits,
  silentAtTheEnd,
  ...syncs,
  { ...exists, act: async (world) => world.run(world.createWords) },
];
