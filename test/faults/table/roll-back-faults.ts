/** Faults of the API while a creation is undone, after a failure on a node or after Ctrl-C. */
import type { Ended, Running } from "../../e2e/support/executable.ts";
import type { Expected, Fault, Struck } from "../fault.ts";
import type { ApiFault, ApiTrouble } from "../worlds/api-troubles.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, struck } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const refused: Expected = {
  status: 1,
  id: "configuration-refused",
  says: ["resolvers: must be a list", "Remove what was created: done"],
  keepsCluster: false,
};

const refusing = answering({
  pattern: "artifact\\.sh --genconf",
  status: 1,
  stdout: "resolvers: must be a list\n",
});

/** The artifact refuses the configuration, and then the API fails as well. */
const whileUndoing = (
  name: string,
  faults: readonly ApiFault[],
  seconds: number,
  expected = refused,
): CloudFault => ({
  name: `${name} while a failed creation is undone`,
  place: "api",
  seconds,
  strike: async (world) => {
    const refusal = await refusing(world);
    const trouble = world.failApi(...faults);
    return {
      hasStruck: () => trouble.hasStruck(),
      [Symbol.asyncDispose]: async () => {
        await trouble[Symbol.asyncDispose]();
        await refusal[Symbol.asyncDispose]();
      },
    };
  },
  expected,
});

const passing: readonly { readonly trouble: ApiTrouble; readonly name: string }[] = [
  { trouble: "reset", name: "two resets" },
  { trouble: "answer-lost", name: "two lost answers" },
  { trouble: "html", name: "a captive portal" },
  { trouble: "empty", name: "two empty answers" },
  { trouble: "hollow", name: "two hollow answers" },
  { trouble: "unavailable", name: "two 503 pages" },
  { trouble: "throttled", name: "throttling" },
  { trouble: "truncated", name: "two halves of an answer" },
];

const brief = ["TerminateInstances", "DeleteSecurityGroup"].flatMap((action) =>
  passing
    // A hollow answer to a deletion is how it is confirmed.
    .filter(({ trouble }) => !(trouble === "hollow" && action === "DeleteSecurityGroup"))
    .map(({ trouble, name }) =>
      whileUndoing(`${name} to ${action}`, [{ action, trouble, times: 2 }], 10),
    ),
);

/** Ctrl-C as soon as this is said, then as often again, after so long, as `more` says. */
const interrupted =
  (
    said: string | RegExp,
    before: (world: CloudWorld, running: Running) => Promise<unknown>,
    again?: number,
  ) =>
  async (world: CloudWorld): Promise<Ended> => {
    const running = world.start(world.createWords);
    await running.said(said);
    await before(world, running);
    running.interrupt("SIGINT");
    if (again !== undefined) {
      await Bun.sleep(again);
      running.interrupt("SIGINT");
    }
    return running.ended;
  };

/** A creation that stays at its configuration. */
const lingering = answering({ pattern: "artifact\\.sh --genconf", delayMs: 600_000 });

const stopped: Expected = {
  status: "SIGINT",
  id: "interrupted",
  says: ["Remove what was created: done"],
  keepsCluster: false,
};

async function lingeringWithEnd(world: CloudWorld): Promise<Struck> {
  const answers = await lingering(world);
  return struck(async () => {
    world.cloud.faults.clear();
    await answers[Symbol.asyncDispose]();
  });
}

const interrupts: readonly CloudFault[] = [
  {
    name: "Ctrl-C during the launch",
    place: "computer",
    act: interrupted("Launch …", async () => {}),
    expected: stopped,
  },
  {
    name: "Ctrl-C during the configuration",
    place: "computer",
    strike: lingeringWithEnd,
    act: interrupted("Configure …", async () => {}),
    expected: stopped,
  },
  {
    name: "Ctrl-C, and the API is down for 45 s",
    place: "api",
    seconds: 70,
    strike: lingeringWithEnd,
    act: interrupted("Configure …", async (world) =>
      world.failApi({ action: "*", trouble: "unavailable", forMs: 45_000 }),
    ),
    expected: stopped,
  },
  {
    name: "Ctrl-C, the network is gone, and Ctrl-C again",
    place: "api",
    seconds: 20,
    strike: lingeringWithEnd,
    act: interrupted(
      "Configure …",
      async (world) => world.failApi({ action: "*", trouble: "reset" }),
      4_000,
    ),
    expected: {
      status: "SIGINT",
      says: ["may be left", "terminate automatically"],
      keepsCluster: false,
    },
  },
  {
    name: "Ctrl-C twice",
    place: "computer",
    strike: lingeringWithEnd,
    act: interrupted(
      "Configure …",
      async (world) => world.failApi({ action: "*", trouble: "slow" }),
      500,
    ),
    expected: {
      status: "SIGINT",
      says: ["may be left", "terminate automatically"],
      keepsCluster: false,
    },
  },
  {
    name: "the session expires after the launch",
    place: "api",
    seconds: 30,
    strike: lingeringWithEnd,
    act: interrupted("Configure …", async (world) =>
      world.failApi({ action: "*", trouble: "expired" }),
    ),
    expected: {
      status: "SIGINT",
      id: "interrupted",
      says: ["has expired", "may be left"],
      keepsCluster: false,
    },
  },
];

const killed: readonly CloudFault[] = ["Launch …", "Boot …", "Configure …"].map((said) => ({
  name: `kill -9 at "${said}"`,
  place: "computer",
  seconds: 10,
  strike: lingeringWithEnd,
  act: async (world) => {
    const running = world.start(world.createWords);
    await running.said(said);
    running.interrupt("SIGKILL");
    return running.ended;
  },
  expected: { status: "SIGKILL", says: [], keepsCluster: false },
}));

const removed = "Remove what was created: done";
const gaveUp = { status: 4, id: "deadline-passed", says: [removed, "ec2:RunInstances"] } as const;
const unanswered = {
  "answer-lost": gaveUp,
  "internal-error": gaveUp,
  hang: gaveUp,
  // It is an answer of EC2, so the creation does not wait for another.
  "no-machines": { status: 1, id: "cloud-failed", says: [removed] },
} as const;

/** All other calls work, so the roll-back ends soon after the creation, which gives up after 15 s. */
const neverLaunched = (
  [
    { trouble: "answer-lost", name: "the answers to all launch requests lost" },
    { trouble: "no-machines", name: "answers to all launch requests that name no machine" },
    { trouble: "internal-error", name: "internal errors to all launch requests" },
    { trouble: "hang", name: "no answer to any launch request" },
  ] as const
).map(({ trouble, name }): CloudFault => ({
  name,
  place: "api",
  seconds: 50,
  strike: async (world) => world.failApi({ action: "RunInstances", trouble }),
  act: async (world) => world.run([...world.createWords, "--timeout", "15s"]),
  expected: { ...unanswered[trouble], keepsCluster: false, withinMs: 135_000 },
}));

export const rollBackFaults: readonly CloudFault[] = [
  ...brief,
  ...neverLaunched,
  whileUndoing(
    "45 s of 503",
    [{ action: "TerminateInstances", trouble: "unavailable", forMs: 45_000 }],
    70,
  ),
  whileUndoing(
    "a captive portal for 20 s, from the end of the machines on,",
    [{ action: "TerminateInstances", trouble: "html", forMs: 20_000 }],
    40,
  ),
  ...interrupts,
  ...killed,
];
