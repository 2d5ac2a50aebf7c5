/** What a creation requests, and what a roll-back removes and names after each step. */
import { unmarked } from "../../../../src/outside-text.ts";
import type { SecurityGroup } from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import { CloudCreation } from "../../../../src/backend/cloud/cloud-creation.ts";
import { groupName, toTags } from "../../../../src/backend/cloud/tags.ts";
import { nodeReference, type NodeRecord } from "../../../../src/model/cluster-record.ts";
import { newRequest } from "../../../support/cloud-fixture.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import {
  type ScriptedInstance,
  outage,
  refusal,
  scriptedCloud,
} from "../../../support/scripted-cloud.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";
const resolved = {
  image: {
    id: "ami-00000001",
    name: "debian",
    user: "me",
    rootDevice: "/dev/xvda",
    furtherDevices: [],
    traits: {},
    leastGigabytes: 8,
    knowsMetadata2: true,
  },
  subnets: [
    { id: "subnet-1", vpcId: "vpc-1", zone: "us-west-2a" },
    { id: "subnet-2", vpcId: "vpc-2", zone: "us-west-2b" },
  ],
  cidrs: ["192.0.2.7/32"],
};

interface Account {
  readonly instances?: readonly ScriptedInstance[];
  readonly groups?: readonly SecurityGroup[];
  readonly knowsMetadata2?: boolean;
  readonly onCall?: (action: string) => void;
}

/** A creation whose calls of an action fail as long as there is a failure for it. */
async function openCreation({
  instances = [],
  groups = [],
  knowsMetadata2 = true,
  onCall,
}: Account = {}) {
  const folder = await scratchFolder();
  const failures = new Map<string, Error>();
  const cloud = scriptedCloud(instances, groups, ({ action }) => {
    onCall?.(action);
    return failures.get(action);
  });
  const request = newRequest("default", { counts: { master: 1, agent: 2, public_agent: 0 } });
  const chosen = { ...resolved, image: { ...resolved.image, knowsMetadata2 } };
  const regionFolder = { region: "us-west-2", root: folder.path };
  const creation = new CloudCreation(
    { api: cloud.api, regionFolder, request, resolved: chosen },
    cloud.runtime,
  );
  const directory = `${folder.path}/default-${creationId}`;
  const claim = async (signal = neverAborted): Promise<void> =>
    creation.claim({ creationId, directory }, signal);
  return {
    ...cloud,
    creation,
    claim,
    failures,
    [Symbol.asyncDispose]: async () => folder[Symbol.asyncDispose](),
  };
}

test("before anything is requested, there is nothing to remove or to name", async () => {
  await using opened = await openCreation();
  const { creation } = opened;
  await creation.stop(neverAborted);
  expect([await creation.remove(neverAborted), creation.remains(), opened.calls]).toEqual([
    undefined,
    undefined,
    [],
  ]);
});

test.each(["UnauthorizedOperation", "InvalidGroup.Duplicate"])(
  "if the security group is refused with %s, nothing is removed or named",
  async (code) => {
    await using opened = await openCreation();
    opened.failures.set("CreateSecurityGroup", refusal(code));
    await failureOf(opened.claim());
    opened.failures.clear();
    expect([await opened.creation.remove(neverAborted), opened.creation.remains()?.left]).toEqual([
      undefined,
      undefined,
    ]);
    expect(opened.changes()).toEqual(["CreateSecurityGroup"]);
  },
);

test("after an interrupt, no security group is requested", async () => {
  await using opened = await openCreation();
  const reason = new Error("interrupted");
  const error: unknown = await failureOf(opened.claim(AbortSignal.abort(reason)));
  expect([error, opened.groupsLeft()]).toEqual([reason, []]);
});

test("a group that was created during an interrupt is removed", async () => {
  const interrupt = new AbortController();
  await using opened = await openCreation({
    onCall: (action) =>
      action === "CreateSecurityGroup" && interrupt.abort(new Error("interrupted")),
  });
  expect((await failureOf(opened.claim(interrupt.signal))).message).toBe("interrupted");
  expect(opened.groupsLeft()).toHaveLength(1);
  expect([await opened.creation.remove(neverAborted), opened.groupsLeft()]).toEqual([
    undefined,
    [],
  ]);
});

const theirs = { clusterId: "default", creationId: "fedcba9876543210" };

test("an id whose machines run is not claimed", async () => {
  const tags = { ...theirs, role: "master", variant: "oss", sshUser: "me" };
  await using opened = await openCreation({ instances: [{ id: "i-00000001", tags }] });
  expect((await failureOf(opened.claim())).id).toBe("cluster-exists");
  expect(opened.changes()).toEqual([]);
});

test("a group that an expired cluster has left does not keep its id", async () => {
  const Tags = toTags("x", { ...theirs, expiresAt: "2025-12-31T23:00:00Z" }, []);
  await using opened = await openCreation({
    groups: [{ GroupId: "sg-0000000f", GroupName: groupName("default"), Tags }],
  });
  await opened.claim();
  expect(opened.groupsLeft()).toEqual(["sg-00000001"]);
});

test.each([
  ["UnauthorizedOperation", undefined, ["Not checked whether the region offers m5.large: "]],
  ["InvalidParameterValue", "cloud-failed", []],
])(
  "if a rehearsal may not see the region's offers because of %s, it %p",
  async (code, id, told) => {
    await using opened = await openCreation();
    opened.failures.set("DescribeInstanceTypeOfferings", refusal(code));
    const rehearsal = opened.creation.rehearse(neverAborted);
    if (id === undefined) await rehearsal;
    else expect(await failureOf(rehearsal)).toHaveProperty("id", id);
    expect(opened.told).toEqual(told.map((text) => expect.stringContaining(text)));
  },
);

test.each([
  [true, []],
  [false, ["ModifyInstanceMetadataOptions"]],
])(
  "if the image knows version 2 of the metadata: %p, the first boot ends with %p",
  async (knowsMetadata2, calls) => {
    await using opened = await openCreation({ knowsMetadata2 });
    const run = async () => Promise.resolve({ status: 0, stdout: "", stderr: "" });
    const node = { id: "i-00000001", role: "agent", index: 0 } as unknown as NodeRecord;
    await opened.creation.firstLogin.finishBoot(node, { run }, neverAborted);
    expect(opened.changes()).toEqual(calls);
  },
);

/** A creation that never got an answer to its request for a group. */
async function openUnanswered() {
  const opened = await openCreation();
  opened.failures.set("CreateSecurityGroup", outage());
  await failureOf(opened.claim());
  opened.failures.clear();
  return opened;
}

test("a security group whose answer was lost is requested again, so that it can be removed", async () => {
  await using opened = await openUnanswered();
  expect(opened.creation.remains()?.left).toBe(
    "Machines of this creation may be left in region us-west-2: they terminate automatically at 02:00 UTC (in 1 h 55 min); the next create there removes its security group.",
  );
  expect(await opened.creation.remove(neverAborted)).toBeUndefined();
  expect(opened.changes().slice(-2)).toEqual(["CreateSecurityGroup", "DeleteSecurityGroup"]);
  expect(opened.groupsLeft()).toEqual([]);
});

test("if another creation has the name meanwhile, its security group stays", async () => {
  await using opened = await openUnanswered();
  await opened.api.call(
    "CreateSecurityGroup",
    { GroupName: groupName("default"), Description: "" },
    neverAborted,
  );
  expect(await opened.creation.remove(neverAborted)).toBeUndefined();
  expect(opened.groupsLeft()).toHaveLength(1);
});

test("credentials that have expired don't show that an earlier request for the group was refused", async () => {
  await using opened = await openCreation();
  opened.failures.set("CreateSecurityGroup", refusal("RequestExpired"));
  await failureOf(opened.claim());
  expect(opened.creation.remains()?.left).toContain(
    "the next create there removes its security group.",
  );
});

test("if the second request for the group fails too, the removal does", async () => {
  await using opened = await openUnanswered();
  opened.failures.set("CreateSecurityGroup", refusal("RequestExpired"));
  expect((await failureOf(opened.creation.remove(neverAborted))).id).toBe("credentials-refused");
});

test("a claimed creation names its group, and says that it has no machines", async () => {
  await using opened = await openCreation();
  await opened.claim();
  expect(opened.creation.remains()?.kept).toBe(
    `no machines. They terminate automatically at 02:00 UTC (in 2 h).`,
  );
  expect(opened.creation.remains()?.left).toContain(
    "the next create there removes security group sg-00000001.",
  );
  expect((await opened.creation.look(neverAborted)).nodes).toEqual([]);
});

test("the machines of each wanted role are launched in one network, and its ports are opened", async () => {
  await using opened = await openCreation();
  await opened.claim();
  await opened.creation.launch("ssh-ed25519 AAAA", neverAborted);
  const inputs = (action: string) =>
    opened.calls.filter((call) => call.action === action).map(({ input }) => input);
  const launches = inputs("RunInstances").toSorted(
    (a, b) => Number(a["MinCount"]) - Number(b["MinCount"]),
  );
  expect(launches).toMatchObject([
    { MinCount: 1, NetworkInterfaces: [{ SubnetId: "subnet-1", Groups: ["sg-00000001"] }] },
    { MinCount: 2, NetworkInterfaces: [{ SubnetId: "subnet-1", Groups: ["sg-00000001"] }] },
  ]);
  const [rules] = inputs("AuthorizeSecurityGroupIngress");
  const permissions = rules?.["IpPermissions"] as
    | readonly { readonly FromPort?: number }[]
    | undefined;
  const ports = permissions?.map(({ FromPort }) => FromPort);
  expect(ports).toEqual([undefined, 22, 80, 443]);
  const named = Object.values(opened.creation.remains() ?? {});
  expect(named).toEqual([
    expect.stringMatching(/^machines i-\d+, i-\d+, i-\d+\. They terminate automatically at 02:0/),
    expect.stringMatching(/^Machines i-\d+, i-\d+, i-\d+ may be left in region us-west-2: /),
  ]);
  expect(opened.machinesLeft()).toHaveLength(3);
  await opened.creation.stop(neverAborted);
  expect([
    opened.machinesLeft(),
    await opened.creation.remove(neverAborted),
    opened.groupsLeft(),
  ]).toEqual([[], undefined, []]);
});

test("the launch is announced with its cost, and its machines are seen afterwards", async () => {
  await using opened = await openCreation();
  await opened.claim();
  await opened.creation.launch("ssh-ed25519 AAAA", neverAborted);
  expect(opened.told).toEqual([
    expect.stringMatching(
      /^Launching 3 machines in us-west-2: about \$0\.72 \(3 × m5\.large for two hours/,
    ),
  ]);
  const names = ["Check for existing clusters", "Create the security group", "Launch"];
  expect(opened.steps).toEqual(names.map((name) => `${name}: done`));
  expect((await opened.creation.look(neverAborted)).nodes.map(nodeReference)).toEqual([
    "master_0",
    "agent_0",
    "agent_1",
  ]);
  expect((await opened.creation.describe(neverAborted)).nodes).toHaveLength(3);
});

test.each([
  ["nothing", 0, []],
  ["harmless complaints", 3, ["1: agent_0: cloud-init reported: no such locale"]],
])(
  "a first boot that ends with %s ends well, since the node has its deadline",
  async (_, status, told) => {
    await using opened = await openCreation();
    const argvs: (readonly string[])[] = [];
    const run = async ({ argv }: { readonly argv: readonly string[] }) => {
      argvs.push(argv);
      return Promise.resolve({ status, stdout: "no such locale\n", stderr: "" });
    };
    const node = { id: "i-00000001", role: "agent", index: 0 } as unknown as NodeRecord;
    await opened.creation.firstLogin.finishBoot(node, { run }, neverAborted);
    expect(opened.told.map(unmarked)).toEqual(told);
    expect(argvs[0]).toContain("cluster-e2e-deadline.service");
  },
);

test("a zone of another network is not tried, since the security group belongs to the first", async () => {
  await using opened = await openCreation();
  await opened.claim();
  opened.failures.set("RunInstances", refusal("InsufficientInstanceCapacity"));
  const error = await failureOf(opened.creation.launch("ssh-ed25519 AAAA", neverAborted));
  expect(error.message).toContain("(tried us-west-2a: InsufficientInstanceCapacity)");
});

test("nodes get other host keys than the first ones, which any process on a machine of their role can read", async () => {
  await using opened = await openCreation();
  const keyOf = (index: number) =>
    opened.creation.firstLogin.hostKey({ role: "agent", index } as NodeRecord);
  expect(keyOf(0)).toEqual({ publicKey: expect.stringMatching(/^ssh-ed25519 /), isPrivate: false });
  expect(keyOf(1)).toEqual(keyOf(0));
});
