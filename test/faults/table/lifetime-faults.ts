/** Faults around the end of a cluster's lifetime, when no program of ours need be there. The next command removes what is left. */
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Fault } from "../fault.ts";
import { usualAnswers } from "../worlds/cloud-world.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import type { ProgramWorld } from "../worlds/program-world.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { struck } from "./cloud-injections.ts";

/** A creation must have come far enough by then. */
const lifetimeMs = 15_000;
const withLifetime = ({
  createWords: [command = "", ...words],
}: ProgramWorld): readonly string[] => [command, "--lifetime", `${lifetimeMs}ms`, ...words];

async function listAfterwards(world: ProgramWorld): Promise<Ended> {
  await Bun.sleep(lifetimeMs + 1_000);
  return world.run(["list"]);
}

const configures: ScriptedAnswer = { pattern: "artifact\\.sh --genconf", delayMs: 600_000 };

const killed = <Bench extends ProgramWorld>(
  answer: (world: Bench, answers: readonly ScriptedAnswer[]) => unknown,
): Fault<Bench> => ({
  name: "a create with a lifetime is killed, and its time passes",
  place: "computer",
  seconds: 26,
  strike: async (world) => {
    await answer(world, [configures, ...usualAnswers]);
    return struck(() => answer(world, usualAnswers));
  },
  act: async (world) => {
    const running = world.start(withLifetime(world));
    await running.said("Configure …");
    running.interrupt("SIGKILL");
    await running.ended;
    return listAfterwards(world);
  },
  expected: {
    status: 0,
    says: ['Removed what is left of cluster "faulty", which ended'],
    keepsCluster: false,
  },
});

const unremovable: Fault<ContainerWorld> = {
  name: "the engine cannot remove what a lifetime has left",
  place: "engine",
  seconds: 32,
  strike: async (world) =>
    world.strike({
      call: "rm",
      when: "before",
      answer: "the network is in use: device or resource busy",
    }),
  act: async (world) => {
    const created = await world.run(withLifetime(world));
    return created.status === 0 ? listAfterwards(world) : created;
  },
  expected: {
    status: 0,
    says: [
      'Cannot remove what is left of cluster "faulty", which ended',
      "device or resource busy",
    ],
    keepsCluster: false,
  },
};

export const lifetimeFaults = {
  container: [
    killed<ContainerWorld>((world, answers) => world.answers.replace(answers)),
    unremovable,
  ],
  vm: [killed<VmWorld>(async (world, answers) => world.answer(...answers))],
};
