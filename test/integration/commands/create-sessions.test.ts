/** How many sessions as root `create` starts on a node. Each costs a process of sshd, a login shell and sudo. */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import { type CloudFixture, openFixture, region } from "../../support/cloud-fixture.ts";
import { runCommandLine } from "../../support/run-command.ts";

const facts = '{"name": "meter", "version": "1.0"}';

const isReady: ScriptedAnswer = {
  pattern: "e2e-readiness",
  readsStdin: true,
  stdout: `layout=folder\nstatus=exit 0\nunit=active\ncheck.status=0\nfacts=${facts}\n`,
};

/** The first answer is another one than that to the next question, which names it. */
const isReadyLater = (text: string): readonly ScriptedAnswer[] => [
  { ...isReady, pattern: "e2e-readiness 3 -", stdout: `seen=7-75\nlayout=folder\n${text}` },
  { ...isReady, delayMs: 300 },
];

/** Nodes on which such a platform is installed. */
const answers = (readiness: readonly ScriptedAnswer[]): readonly ScriptedAnswer[] => [
  { pattern: "e2e-first-contact", replaceHostKey: true },
  {
    pattern: "artifact\\.sh --version",
    stdout: '{"variant":"none","version":"1.0","name":"meter"}\n',
  },
  { pattern: "artifact\\.sh --genconf", stdout: "platform_install.sh\n" },
  { pattern: "resolv\\.conf", stdout: "10.0.0.2\n" },
  ...readiness,
  { pattern: "", readsStdin: true },
];

async function writeMeter(folder: string): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, "platform.yaml"), 'name: meter\nversion: "1.0"\n');
  for (const name of ["install", "check"]) {
    await writeFile(join(folder, name), "#!/bin/sh\n");
    await chmod(join(folder, name), 0o755);
  }
}

interface Session {
  readonly instanceId: string;
  readonly command: string;
}

/** What the sessions as root of an instance run. */
const sessionsOf = (sessions: readonly Session[], id: string): readonly (string | undefined)[] =>
  sessions
    .filter(({ instanceId, command }) => instanceId === id && command.includes("exec sudo -n"))
    .map(({ command }) => / (e2e-[a-z]+-[a-z]+)/.exec(command)?.[1]);

const masterOf = ({ cloud }: CloudFixture): string =>
  cloud.instances().find(({ tags }) => tags["cluster-e2e:role"] === "master")!.instanceId;

test.each([
  ["is installed at once", [isReady]],
  ["takes a while to install", isReadyLater("status=running\nunit=active\n")],
])(
  "create --wait of a folder that %s starts two sessions as root on the first master: for its host key, and for all else",
  async (_, readiness) => {
    const sessions: Session[] = [];
    const onSession = (session: Session): void => void sessions.push(session);
    await using fixture = await openFixture({}, { rootShellBreaks: () => () => false, onSession });
    const { cloud, runtime } = fixture;
    cloud.answers.replace(answers(readiness));
    const cwd = runtime.environment["HOME"]!;
    await writeMeter(join(cwd, "meter"));
    const line = `create --wait --cloud-region ${region} --linux-distribution debian-12 --masters 1 --agents 1 --public-agents 0 -c mine meter`;
    await writeFile(join(cwd, "ssh"), "#!/bin/sh\n", { mode: 0o755 });
    const environment = { ...(runtime.environment as Record<string, string>), PATH: cwd };
    await runCommandLine(line, {
      kind: cloudKind,
      backend: await fixture.open(region),
      nowMs: 0,
      clock: systemClock,
      cwd,
      environment,
    });
    const ofMaster = sessionsOf(sessions, masterOf(fixture));
    expect(ofMaster).toEqual(["e2e-first-contact", "e2e-root-shell"]);
  },
);
