/** Faults that end `once` early, at each of its stages. Whatever it had come to, nothing is left, or the next creation removes it. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Ended } from "../../e2e/support/executable.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { Expected, Fault } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { usualAnswers } from "../worlds/cloud-world.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import type { ProgramWorld } from "../worlds/program-world.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { endedBy, struck } from "./cloud-injections.ts";

type Answering<Bench> = (world: Bench, answers: readonly ScriptedAnswer[]) => unknown;

export const onceWords = (
  { createWords, stateFolder }: ProgramWorld,
  report = join(stateFolder, "junit.xml"),
): readonly string[] => [
  "once",
  ...createWords.slice(1),
  ..."--skip-http-checks --superuser-password a-password --no-test-env --junit".split(" "),
  report,
  "--",
  "work",
];

const nodesSay = (stdout: string): ScriptedAnswer => ({
  pattern: "e2e-readiness",
  stdout,
  readsStdin: true,
});
export const isReady = nodesSay(
  'layout=cluster\nstatus=exit 0\nunit=inactive\nconfig={"ssl_enabled": false}\ncheck.status=0\n',
);
const installs = nodesSay("layout=cluster\nstatus=running\nunit=active\n");
const fails = nodesSay("layout=cluster\nstatus=exit 3\nunit=failed\nlog=no luck\n");
const configures: ScriptedAnswer = { pattern: "artifact\\.sh --genconf", delayMs: 600_000 };
/** The session of the command. */
export const works = (answer: Omit<ScriptedAnswer, "pattern">): ScriptedAnswer => ({
  pattern: "RUN_SEALED=",
  ...answer,
});
const worksLong = works({ delayMs: 600_000 });

interface Stage {
  readonly name: string;
  /** What the program says when it has come so far. */
  readonly said: string;
  readonly answers: readonly ScriptedAnswer[];
}

const stages: readonly Stage[] = [
  { name: "while nodes boot", said: "Boot …", answers: [configures] },
  { name: "during the configuration", said: "Configure …", answers: [configures] },
  { name: "during the wait", said: "the installer is running", answers: [installs] },
  { name: "while its command runs", said: "is ready.", answers: [isReady, worksLong] },
  {
    name: "while it removes the cluster",
    said: "Remove what was created",
    answers: [isReady, works({})],
  },
];

function faultsWith<Bench extends ProgramWorld>(answer: Answering<Bench>): readonly Fault<Bench>[] {
  const once = (
    name: string,
    { said, answers }: Pick<Stage, "answers"> & Partial<Stage>,
    expected: Expected,
    signals: readonly NodeJS.Signals[] = [],
  ): Fault<Bench> => ({
    name,
    place: "computer",
    seconds: 8,
    strike: async (world) => {
      await answer(world, [...answers, ...usualAnswers]);
      return struck(() => answer(world, usualAnswers));
    },
    act: async (world) => {
      const play = async (): Promise<Ended> => {
        const running = world.start(onceWords(world));
        if (said !== undefined) await running.said(said);
        for (const signal of signals) running.interrupt(signal);
        return running.ended;
      };
      let ended = await play();
      // On a busy computer, the program may end by itself before it gets the signal.
      for (let late = 0; signals.length > 0 && ended.status === 0 && late < 5; late += 1)
        ended = await play();
      return ended;
    },
    expected,
  });
  return [
    reportFault(answer),
    ...stages.map((stage) =>
      once(`once is killed ${stage.name}`, stage, endedBy("SIGKILL"), ["SIGKILL"]),
    ),
    ...stages
      .slice(0, -1)
      .flatMap((stage) =>
        (["SIGINT", "SIGTERM"] as const).map((signal) =>
          once(`once gets ${signal} ${stage.name}`, stage, endedBy(signal), [signal]),
        ),
      ),
    once(
      "the command of once fails",
      { answers: [isReady, works({ status: 7 })] },
      {
        status: 7,
        says: ["The command exited with status 7.", "Remove what was created: done"],
        keepsCluster: false,
      },
    ),
    once(
      "the installation of once fails",
      { answers: [fails] },
      {
        status: 1,
        id: "install-failed",
        says: ["no luck", "Remove what was created: done"],
        keepsCluster: false,
      },
    ),
  ];
}

/** The disk of the report gets full after the beginning. */
const reportFault = <Bench extends ProgramWorld>(answer: Answering<Bench>): Fault<Bench> => ({
  name: "the disk is full, then once writes its report",
  place: "computer",
  seconds: 8,
  lack: process.getuid?.() === 0 ? undefined : "only root mounts file systems",
  strike: async (world) => {
    const small = join(world.folder, "small");
    await answer(world, [isReady, works({ status: 7 }), ...usualAnswers]);
    await mkdir(small);
    await Bun.$`mount -t tmpfs -o size=256k tmpfs ${small}`.quiet();
    return struck(async () => {
      await answer(world, usualAnswers);
      await Bun.$`umount ${small}`.quiet();
    });
  },
  act: async (world) => {
    const report = join(world.folder, "small", "junit.xml");
    const running = world.start(onceWords(world, report));
    // Before that, it looks whether it can write there.
    await running.said("Boot …");
    await Bun.write(join(world.folder, "small", "filler"), new Uint8Array(256 * 1024));
    const ended = await running.ended;
    if (await Bun.file(report).exists())
      throw new Error(`a part of the report was written:\n${ended.stderr}`);
    return ended;
  },
  expected: {
    status: 7,
    says: ["Warning: cannot write the JUnit report", "The command exited with status 7."],
    keepsCluster: false,
  },
});

/** GitHub Actions sends both, with 7.5 s between them, and ends the program 2.5 s later. */
const cutOff: Fault<CloudWorld> = {
  name: "once gets SIGINT, and SIGTERM before the API has answered",
  place: "api",
  seconds: 10,
  strike: async ({ cloud }) => {
    cloud.answers.replace([isReady, worksLong, ...usualAnswers]);
    return struck(() => {
      cloud.faults.clear();
      cloud.answers.replace(usualAnswers);
    });
  },
  act: async (world) => {
    const running = world.start(onceWords(world));
    await running.said("is ready.");
    world.failApi({ action: "*", trouble: "slow" });
    running.interrupt("SIGINT");
    await running.said("Remove what was created");
    await Bun.sleep(500);
    running.interrupt("SIGTERM");
    return running.ended;
  },
  expected: {
    status: "SIGTERM",
    says: ["may be left", "terminate automatically"],
    keepsCluster: false,
  },
};

const onCloud = faultsWith<CloudWorld>((world, answers) => world.cloud.answers.replace(answers));

export const onceFaults = {
  cloud: [...onCloud, cutOff],
  container: faultsWith<ContainerWorld>((world, answers) => world.answers.replace(answers)),
  vm: faultsWith<VmWorld>(async (world, answers) => world.answer(...answers)),
};
