/** Faults of the API that meet the commands on a cluster that is there. */
import type { Expected, Fault } from "../fault.ts";
import type { ApiFault, ApiTrouble } from "../worlds/api-troubles.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";

type CloudFault = Fault<CloudWorld>;

interface Question {
  readonly name: string;
  readonly words: readonly string[];
  /** What stands in the output if all is well. */
  readonly says: readonly (string | RegExp)[];
  /** The exit code when the API fails. */
  readonly failure: number;
}

const list: Question = { name: "list", words: ["list"], says: [/^faulty +running/m], failure: 1 };
const inspect: Question = {
  name: "inspect",
  words: ["inspect", "-c", "faulty"],
  says: [/master_0/, /agent_0/],
  failure: 1,
};
const run: Question = {
  name: "run",
  words: ["run", "-c", "faulty", "--no-test-env", "true"],
  says: [],
  failure: 255,
};
const logs: Question = {
  name: "logs",
  words: ["logs", "-c", "faulty", "--output-dir", "logs"],
  says: [],
  failure: 1,
};

const onCluster = (
  name: string,
  words: readonly string[],
  faults: readonly ApiFault[],
  expected: Expected,
): CloudFault => ({
  name,
  place: "api",
  needsCluster: true,
  seconds: expected.status === 0 ? 6 : 20,
  strike: async (world) => world.failApi(...faults),
  act: async (world) => world.run(words),
  expected,
});

const passing: readonly { readonly trouble: ApiTrouble; readonly name: string }[] = [
  { trouble: "reset", name: "connection reset" },
  { trouble: "html", name: "captive portal" },
  { trouble: "empty", name: "empty answer" },
  { trouble: "hollow", name: "hollow answer" },
  { trouble: "truncated", name: "half an answer" },
  { trouble: "unavailable", name: "503 page" },
  { trouble: "throttled", name: "throttled" },
];

/** Once: the command waits it out. A hollow answer is a whole one that names no machine. */
const once = [list, inspect].flatMap(({ name, words, says }) =>
  passing
    .filter(({ trouble }) => trouble !== "hollow")
    .map((kind) =>
      onCluster(
        `${kind.name} once at ${name}`,
        words,
        [{ action: "DescribeInstances", trouble: kind.trouble, times: 1 }],
        {
          status: 0,
          says,
          keepsCluster: true,
        },
      ),
    ),
);

const lasting: readonly {
  readonly trouble: ApiTrouble;
  readonly name: string;
  readonly id: string;
}[] = [
  { trouble: "reset", name: "every connection reset", id: "cloud-failed" },
  { trouble: "html", name: "a captive portal", id: "cloud-failed" },
  { trouble: "empty", name: "only empty answers", id: "cloud-failed" },
  { trouble: "unavailable", name: "only 503 pages", id: "cloud-failed" },
  { trouble: "expired", name: "an expired session", id: "credentials-refused" },
];

/** For good: the command fails, and never says that there is no cluster. */
const forGood = [list, inspect, run, logs].flatMap(({ name, words, failure }) =>
  lasting.map((kind) => {
    const status = kind.id === "credentials-refused" ? 5 : failure;
    return onCluster(
      `${kind.name} at ${name}`,
      words,
      [{ action: "DescribeInstances", trouble: kind.trouble }],
      {
        status,
        id: kind.id,
        says: [kind.id === "cloud-failed" ? "ec2:DescribeInstances" : "has expired"],
        hides: ["No clusters", "cluster-not-found"],
        keepsCluster: true,
      },
    );
  }),
);

const hangs: readonly CloudFault[] = [
  {
    name: "every request hangs, and create has a limit",
    place: "api",
    seconds: 25,
    strike: async (world) => world.failApi({ action: "*", trouble: "hang" }),
    act: async (world) => world.run([...world.createWords, "--timeout", "10s"]),
    expected: {
      status: 4,
      id: "deadline-passed",
      says: ["exceeded its time limit"],
      keepsCluster: false,
      withinMs: 20_000,
    },
  },
  {
    name: "every request hangs, and wait has a limit",
    place: "api",
    needsCluster: true,
    seconds: 25,
    strike: async (world) => world.failApi({ action: "*", trouble: "hang" }),
    act: async (world) => world.run(["wait", "-c", "faulty", "--timeout", "10s"]),
    expected: {
      status: 4,
      id: "deadline-passed",
      says: ["exceeded its time limit"],
      keepsCluster: true,
      withinMs: 20_000,
    },
  },
];

export const commandFaults: readonly CloudFault[] = [...once, ...forGood, ...hangs];
