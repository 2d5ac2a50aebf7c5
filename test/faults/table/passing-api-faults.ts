/** Faults of the API that pass within seconds, at each kind of request of a creation: the creation succeeds all the same. */
import type { Fault } from "../fault.ts";
import type { ApiTrouble } from "../worlds/api-troubles.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { created } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

/** The requests of a creation, in their order. `skip`: requests of that name that pass before it is meant. */
const steps = [
  { step: "the region's images", action: "DescribeImages" },
  { step: "what is there", action: "DescribeInstances" },
  { step: "the group", action: "CreateSecurityGroup" },
  { step: "its rules", action: "AuthorizeSecurityGroupIngress" },
  { step: "the launch", action: "RunInstances" },
  { step: "a poll", action: "DescribeInstances", skip: 2 },
] as const;

/** What passes by itself: each of these is waited out. */
const passing: readonly {
  readonly trouble: ApiTrouble;
  readonly name: string;
  readonly times: number;
}[] = [
  { trouble: "reset", name: "connection reset", times: 2 },
  { trouble: "answer-lost", name: "answer lost", times: 1 },
  { trouble: "answer-cut", name: "answer cut off", times: 1 },
  { trouble: "html", name: "captive portal", times: 1 },
  { trouble: "empty", name: "empty answer", times: 1 },
  { trouble: "truncated", name: "half an answer", times: 1 },
  { trouble: "unavailable", name: "503 page", times: 2 },
  { trouble: "throttled", name: "throttled", times: 3 },
];

export const passingApiFaults: readonly CloudFault[] = steps.flatMap(({ step, action, ...more }) =>
  passing.map(({ trouble, name, times }): CloudFault => ({
    name: `${name} at ${step}`,
    place: "api",
    strike: async (world) => world.failApi({ action, trouble, times, ...more }),
    expected: created,
  })),
);
