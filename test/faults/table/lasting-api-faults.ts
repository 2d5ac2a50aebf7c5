/** Faults of the API that stay, or that the program can do nothing about: the creation says so and leaves nothing. */
import type { Expected, Fault } from "../fault.ts";
import type { ApiFault, ApiTrouble } from "../worlds/api-troubles.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { behaving, created, duringTheFault, failed } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const throughout = (
  name: string,
  faults: readonly ApiFault[],
  expected: Expected,
  seconds = 4,
): CloudFault => ({
  name,
  place: "api",
  seconds,
  strike: async (world) => world.failApi(...faults),
  expected,
});

/** What each lasting kind of trouble is called in the error. */
const kinds: readonly {
  readonly trouble: ApiTrouble;
  readonly name: string;
  readonly expected: Expected;
}[] = [
  {
    trouble: "reset",
    name: "every connection reset",
    expected: failed("cloud-failed", "did not answer ec2:"),
  },
  {
    trouble: "html",
    name: "a captive portal",
    expected: failed("cloud-failed", "did not answer ec2:"),
  },
  {
    trouble: "empty",
    name: "only empty answers",
    expected: failed("cloud-failed", "did not answer ec2:"),
  },
  {
    trouble: "unavailable",
    name: "only 503 pages",
    expected: failed("cloud-failed", /50[0-9]|did not answer/),
  },
  {
    trouble: "bad-gateway",
    name: "only 502 pages",
    expected: failed("cloud-failed", /502|did not answer/),
  },
  {
    trouble: "proxy-login",
    name: "a proxy that wants a login",
    expected: failed("cloud-failed", /407|proxy/i),
  },
  {
    trouble: "redirect",
    name: "a redirect to a login page",
    expected: failed("cloud-failed", /302|did not answer/),
  },
  {
    trouble: "internal-error",
    name: "only internal errors",
    expected: failed("cloud-failed", "InternalError"),
  },
  {
    trouble: "throttled",
    name: "only throttling",
    expected: failed("cloud-failed", "RequestLimitExceeded"),
  },
  {
    trouble: "expired",
    name: "an expired session",
    expected: failed("credentials-refused", "has expired", 5),
  },
  {
    trouble: "refused-key",
    name: "a revoked key",
    expected: failed("credentials-refused", "AuthFailure", 5),
  },
];

const fromTheStart = kinds.map(({ trouble, name, expected }) =>
  throughout(`${name}, from the start`, [{ action: "*", trouble }], expected, 30),
);

/** Refused, the launch is over at once. Unanswered, the same request is sent again until there is an answer. */
const launchOnly = kinds
  .filter(({ trouble }) => trouble !== "proxy-login" && trouble !== "redirect")
  .map(({ trouble, name, expected }) => {
    const isRefusal = expected.id === "credentials-refused";
    const fault: ApiFault = {
      action: "RunInstances",
      trouble,
      ...(!isRefusal && { forMs: 20_000 }),
    };
    const title = isRefusal ? `${name}, at every launch request` : `${name} for 20 s at the launch`;
    return throughout(title, [fault], isRefusal ? expected : created, isRefusal ? 6 : 35);
  });

const denied = [
  "DescribeImages",
  "DescribeInstances",
  "CreateSecurityGroup",
  "AuthorizeSecurityGroupIngress",
  "RunInstances",
].map((action): CloudFault => ({
  name: `no permission for ${action}`,
  place: "api",
  strike: behaving({ deniedActions: [action] }),
  expected: failed("not-permitted", `may not call ec2:${action}`, 5),
}));

const unreachable: readonly CloudFault[] = [
  {
    name: "the endpoint refuses connections",
    place: "api",
    seconds: 20,
    act: duringTheFault({ AWS_ENDPOINT_URL_EC2: "http://127.0.0.1:9" }),
    expected: failed("cloud-failed", "127.0.0.1:9"),
  },
  {
    name: "the endpoint's name is unknown",
    place: "api",
    seconds: 20,
    act: duringTheFault({ AWS_ENDPOINT_URL_EC2: "http://ec2.region.invalid" }),
    expected: failed("cloud-failed", "ec2.region.invalid"),
  },
  {
    name: "the proxy of the environment is down",
    place: "api",
    seconds: 20,
    act: duringTheFault({ HTTP_PROXY: "http://127.0.0.1:9" }),
    expected: failed("cloud-failed", /HTTPS?_PROXY/),
  },
  {
    name: "the endpoint speaks no TLS",
    place: "api",
    seconds: 20,
    act: async (world) => {
      const endpoint = world.cloud.endpoint.replace("http:", "https:");
      return world.run(world.createWords, { environment: { AWS_ENDPOINT_URL_EC2: endpoint } });
    },
    expected: failed("cloud-failed", "did not answer ec2:"),
  },
  {
    name: "the certificates' file is missing",
    place: "computer",
    act: duringTheFault({ AWS_CA_BUNDLE: "/nonexistent.pem" }),
    expected: failed("machine-not-set-up", "AWS_CA_BUNDLE", 5),
  },
];

const limits: readonly CloudFault[] = [
  {
    name: "the account's limit is reached",
    place: "api",
    strike: behaving({ vcpuLimit: 2 }),
    expected: failed("capacity-lacking", "VcpuLimitExceeded"),
  },
  {
    name: "no zone has room",
    place: "api",
    strike: behaving({
      zoneCapacity: { "us-west-2a": 0, "us-west-2b": 0, "us-west-2c": 0, "us-west-2d": 0 },
    }),
    expected: failed("capacity-lacking", "InsufficientInstanceCapacity"),
  },
  {
    name: "one zone has no room",
    place: "api",
    strike: behaving({ zoneCapacity: { "us-west-2a": 0 } }),
    expected: created,
  },
  {
    name: "new ids stay unknown for five seconds",
    place: "api",
    seconds: 15,
    strike: behaving({
      instancesVisibleAfterMs: 5_000,
      tagsVisibleAfterMs: 7_000,
      groupsVisibleAfterMs: 3_000,
    }),
    expected: created,
  },
  {
    name: "one minute of throttling from the launch on",
    place: "api",
    seconds: 75,
    strike: async (world) =>
      world.failApi({ action: "RunInstances", trouble: "throttled", forMs: 60_000 }),
    expected: created,
  },
  {
    name: "the answer is lost and the machines stay unseen",
    place: "api",
    seconds: 30,
    strike: async (world) => {
      world.cloud.behaviour.change({ instancesVisibleAfterMs: 20_000, tagsVisibleAfterMs: 20_000 });
      return world.failApi({ action: "RunInstances", trouble: "answer-lost", times: 3 });
    },
    expected: created,
  },
  throughout(
    "503 for 15 s on the polls",
    [{ action: "DescribeInstances", trouble: "unavailable", skip: 3, forMs: 15_000 }],
    created,
    25,
  ),
  throughout(
    "a launch that names no machine",
    [{ action: "RunInstances", trouble: "no-machines", times: 2 }],
    created,
    12,
  ),
  throughout(
    "a new group without an id",
    [{ action: "CreateSecurityGroup", trouble: "hollow", times: 1 }],
    created,
  ),
  throughout(
    "own machines with half of their tags",
    [{ action: "DescribeInstances", trouble: "half-tags", skip: 2, forMs: 4_000 }],
    created,
    10,
  ),
  throughout(
    "addresses that come seconds late",
    [{ action: "DescribeInstances", trouble: "no-address", forMs: 5_000 }],
    created,
    10,
  ),
  throughout(
    "machines without a public address",
    [{ action: "DescribeInstances", trouble: "no-address" }],
    { ...failed("machine-failed", /public address/), withinMs: 180_000 },
    140,
  ),
  throughout("a slow API", [{ action: "*", trouble: "slow", times: 6 }], created, 20),
  throughout(
    "one request that is never answered",
    [{ action: "CreateSecurityGroup", trouble: "hang", times: 1 }],
    created,
    30,
  ),
];

export const lastingApiFaults: readonly CloudFault[] = [
  ...fromTheStart,
  ...launchOnly,
  ...denied,
  ...unreachable,
  ...limits,
];
