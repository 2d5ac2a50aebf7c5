/**
 * Tags and answers of a cloud that contain control characters: none of them controls a terminal or begins a line of its
 * own.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  DescribeImagesCommand,
  DescribeInstancesCommand,
  EC2Client,
  RunInstancesCommand,
} from "@aws-sdk/client-ec2";
import { until } from "../support/until.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

/** What XML can carry of it: C1's CSI and OSC, a line of its own, a text that is turned around. */
const hostile = "x\u009B2J\u009D0;title\u009C\nError: forged\n\u202Edlrow\u2028";
const controls = /[^\P{Cc}\n\t]|[\u200E\u200F\u2028-\u202E\u2066-\u2069]/u;
const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  state.cloud = await startTestCloud("in-process");
  const { environment } = cloud();
  const client = new EC2Client({
    endpoint: environment["AWS_ENDPOINT_URL_EC2"]!,
    region: "us-west-2",
    credentials: {
      accessKeyId: environment["CLOUD_ACCESS_KEY_ID"]!,
      secretAccessKey: environment["CLOUD_SECRET_ACCESS_KEY"]!,
    },
  });
  const { Images = [] } = await client.send(
    new DescribeImagesCommand({ Filters: [{ Name: "name", Values: ["debian-12-amd64-*"] }] }),
  );
  // Anyone who may launch and tag an instance in the account can do this. All but one have a tag that is more than
  // text.
  const variants = ["none", ...Object.keys(soundTags)];
  for (const changed of variants) {
    const tags = {
      ...soundTags,
      "cluster-id": `sound-${changed}`,
      "creation-id": creationId(),
      [changed]: hostile,
    };
    await client.send(
      new RunInstancesCommand({
        ImageId: Images[0]!.ImageId!,
        InstanceType: "m5.large",
        MinCount: 1,
        MaxCount: 1,
        TagSpecifications: [
          {
            ResourceType: "instance",
            Tags: Object.entries(tags).map(([name, Value]) => ({
              Key: `cluster-e2e:${name}`,
              Value,
            })),
          },
        ],
      }),
    );
  }
  await until("the cloud shows them with their tags", async () => {
    const Filters = [{ Name: "tag-key", Values: ["cluster-e2e:expires-at"] }];
    const { Reservations = [] } = await client.send(new DescribeInstancesCommand({ Filters }));
    return Reservations.length === variants.length;
  });
  client.destroy();
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const soundTags: Readonly<Record<string, string>> = {
  "cluster-id": "sound",
  "creation-id": "0123456789abcdef",
  role: "master",
  "index-base": "0",
  counts: "master=1 agent=0 public_agent=0",
  variant: "oss",
  "web-ui": "http",
  distribution: "debian-12",
  "ssh-user": "admin",
  "expires-at": "2099-01-01T00:00:00Z",
};

const creationId = (): string => crypto.randomUUID().replaceAll("-", "").slice(0, 16);

function expectHarmless({
  stdout,
  stderr,
}: {
  readonly stdout: string;
  readonly stderr: string;
}): void {
  for (const text of [stdout, stderr]) {
    expect(text).not.toMatch(controls);
    expect(text).not.toMatch(/^Error: forged/m);
  }
}

test.each([
  "list",
  "list -vvv",
  "list --quiet",
  "list --all-regions",
  "list --output json",
  "doctor -v",
])("%s", async (line) => {
  const ended = await cloud().run(line.split(" "));
  expectHarmless(ended);
  if (line.startsWith("list")) expect(ended.stdout).toContain("sound-none");
  if (line.includes("json")) expect(JSON.parse(ended.stdout)).toMatchObject({ schemaVersion: 1 });
});

test.each(["text", "json", "ssh-config"])(
  "inspect --output %s, of every cluster that there is or seems to be",
  async (format) => {
    const ids = ["none", ...Object.keys(soundTags)].map((changed) => `sound-${changed}`);
    for (const id of ids)
      expectHarmless(await cloud().run(["inspect", "-c", id, "-v", "--output", format]));
  },
);

// Shows R132.
test("a failure's message, and its stack at -vv", async () => {
  await cloud().control("faults", {
    action: "DescribeInstances",
    when: "before",
    times: "always",
    code: "InvalidParameterValue",
    message: `the cloud says ${hostile}`,
  });
  for (const words of [["list"], ["list", "-vv"], ["list", "--output", "json"]]) {
    const ended = await cloud().run(words);
    expect(ended.status).toBe(1);
    expect(ended.stderr).toContain("the cloud says x\uFFFD2J");
    expectHarmless(ended);
  }
});
