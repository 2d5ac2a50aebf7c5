/** The built executable reports what would stop the other commands, and changes nothing. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

interface Check {
  readonly name: string;
  readonly status: "pass" | "warn" | "fail" | "skip";
  readonly message: string;
  readonly remedy?: string;
}

const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;
/** Nothing of the person who runs the tests. */
const alone = { AWS_EC2_METADATA_DISABLED: "true", CI: "true" };

beforeAll(async () => {
  state.cloud = await startTestCloud("in-process");
});
beforeEach(async () => {
  await cloud().control("reset", {});
});
afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const doctor = (
  words: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
) => cloud().run(["doctor", ...words], { environment: { ...alone, ...environment } });

/** The checks of the JSON output, by name. */
async function checks(
  environment: Readonly<Record<string, string>>,
  words: readonly string[] = [],
) {
  const ran = await doctor(["--output", "json", ...words], environment);
  const answer = JSON.parse(ran.stdout) as {
    readonly schemaVersion: number;
    readonly checks: readonly Check[];
  };
  const byName = new Map(answer.checks.map((check) => [check.name, check]));
  const failed = answer.checks.filter(({ status }) => status === "fail").map(({ name }) => name);
  return { ...ran, ...answer, byName, failed };
}

const secret = (): string => cloud().environment["CLOUD_SECRET_ACCESS_KEY"]!;

// Shows R3.
test("all well: 0, a line a check in the declared order, and no state folder made", async () => {
  const ran = await doctor();
  expect(ran.status).toBe(0);
  const names = ran.stdout
    .split("\n")
    .flatMap((line) => /^[✔!–] (\S.*?)(?: {2}|$)/.exec(line)?.[1] ?? []);
  expect(names).toEqual([
    "operating system",
    "runtime",
    "ssh",
    "state folder",
    "temporary space",
    "credentials",
    "account",
    "region",
    "clock",
    "ec2:DescribeInstances",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeImages",
    "ec2:DescribeSubnets",
    "ec2:DescribeRegions",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:CreateSecurityGroup",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:RunInstances",
    "ec2:GetConsoleOutput",
    "ec2:ModifyInstanceMetadataOptions",
    "ec2:TerminateInstances",
    "ec2:DeleteSecurityGroup",
    "network",
    "image",
    "instance type",
    "admin address",
    "leftovers",
    "browser",
  ]);
  expect(ran.stdout).not.toContain("\u001B");
  expect(ran.stderr).toContain(`${names.length} checks: `);
  expect(await readdir(cloud().folder)).not.toContain("state");
});

test("all messages begin in one column, and remedies stand below them", async () => {
  const { stdout } = await doctor([], { PATH: "/nowhere" });
  // A name that is too long has a line to itself, and its message the next one.
  const lines = stdout
    .trimEnd()
    .replaceAll(/^\S \S+\n.*\n/gm, "")
    .split("\n");
  const column = lines[0]!.search(/(?<= {2})\S/);
  expect(lines.map((line) => line.slice(column - 2, column)).filter((gap) => gap !== "  ")).toEqual(
    [],
  );
  expect(lines.map((line) => line[column]).filter((start) => start === " ")).toEqual([]);
  expect(
    lines
      .filter((line) => line.startsWith(" "))
      .every((line) => line.slice(column).startsWith("→ ")),
  ).toBe(true);
});

// Shows R61.
test("-v: source, account, region, the end of the credentials and times", async () => {
  const { stdout } = await doctor(["-v"]);
  expect(stdout).toMatch(
    /credentials +Valid, from the variables CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY \(\d+ ms\)/,
  );
  expect(stdout).toMatch(/account +\d{12} \(\d+ ms\)/);
  expect(stdout).toMatch(/region +us-west-2 can be used \(\d+ ms\)/);
  expect(stdout).toContain("It is not known whether they expire");
});

test("JSON under -vvv: one object with every check, and no secret anywhere", async () => {
  const { status, schemaVersion, stdout, stderr, byName } = await checks({}, ["-vvv"]);
  expect({ status, schemaVersion }).toEqual({ status: 0, schemaVersion: 1 });
  expect(byName.get("image")).toMatchObject({
    status: "pass",
    milliseconds: expect.any(Number) as number,
  });
  expect(stderr).toContain("ec2:DescribeImages in us-west-2 answered");
  expect(stdout + stderr).not.toContain(secret());
});

test("JSON without -v: name, status, message, and a remedy where one is needed", async () => {
  await cloud().control("behaviour", { deniedActions: ["RunInstances"] });
  const { status, byName } = await checks({});
  expect(status).toBe(1);
  expect(Object.keys(byName.get("ssh")!)).toEqual(["name", "status", "message"]);
  expect(Object.keys(byName.get("ec2:RunInstances")!)).toEqual([
    "name",
    "status",
    "message",
    "remedy",
  ]);
});

// Shows R10.
test.each<[string, Readonly<Record<string, string>>, readonly string[], string]>([
  ["no ssh on the PATH", { PATH: "/nowhere" }, [], "ssh"],
  ["a state folder that cannot be made", { XDG_STATE_HOME: "/proc/nowhere" }, [], "state folder"],
  ["no folder for temporary files", { TMPDIR: "/nowhere" }, [], "temporary space"],
  ["half of the credentials", { CLOUD_SECRET_ACCESS_KEY: "" }, [], "credentials"],
  ["wrong credentials", { CLOUD_SECRET_ACCESS_KEY: "wrong-wrong-wrong" }, [], "credentials"],
  ["a region that is not enabled", {}, ["--cloud-region", "af-south-1"], "region"],
  ["no default network", {}, ["--cloud-region", "sa-east-1"], "network"],
  ["no image", {}, ["--cloud-region", "ap-southeast-2"], "image"],
  [
    "no way to ask for the own address",
    { CLUSTER_CHECK_ADDRESS_URL: "http://127.0.0.1:9" },
    [],
    "admin address",
  ],
])("%s: 1, and that check alone has failed", async (_what, environment, words, name) => {
  const { status, failed, byName, stdout, stderr } = await checks(environment, words);
  expect({ status, failed }).toEqual({ status: 1, failed: [name] });
  expect(byName.get(name)?.remedy).toBeTruthy();
  expect(stdout + stderr).not.toContain(secret());
});

// Shows R106.
test("a clock that is an hour off", async () => {
  await cloud().control("clock", { skewMs: 3_600_000 });
  const { status, failed } = await checks({});
  expect({ status, failed }).toEqual({ status: 1, failed: ["clock"] });
});

test("a state folder that others can write to", async () => {
  const home = join(cloud().folder, "open");
  await mkdir(join(home, "cluster-e2e"), { recursive: true });
  await chmod(join(home, "cluster-e2e"), 0o777);
  const { failed, byName } = await checks({ XDG_STATE_HOME: home });
  expect(failed).toEqual(["state folder"]);
  expect(byName.get("state folder")?.remedy).toContain("chmod 700");
});

test("a session that has run out is told with how to renew it", async () => {
  const home = join(cloud().folder, "home");
  await mkdir(join(home, ".aws"), { recursive: true });
  const process = `sh -c 'echo {\\"Version\\":1,\\"AccessKeyId\\":\\"A\\",\\"SecretAccessKey\\":\\"S\\",\\"Expiration\\":\\"2020-01-01T00:00:00Z\\"}'`;
  await writeFile(join(home, ".aws", "config"), `[profile ci]\ncredential_process = ${process}\n`);
  const none = { CLOUD_ACCESS_KEY_ID: "", CLOUD_SECRET_ACCESS_KEY: "" };
  const { failed, byName } = await checks({ ...none, HOME: home, CLOUD_PROFILE: "ci" });
  expect(failed).toEqual(["credentials"]);
  expect(byName.get("credentials")).toMatchObject({
    message: expect.stringContaining("expired") as string,
    remedy: expect.stringContaining('Run the credential_process of profile "ci" by hand') as string,
  });
});

test("Ctrl-C ends it at once, by the signal", async () => {
  await cloud().control("behaviour", { apiDelayMs: 2_000 });
  const running = cloud().start(["doctor"], { environment: alone });
  await running.said("Check …");
  await Bun.sleep(300);
  running.interrupt("SIGINT");
  const { signal, stdout } = await running.ended;
  expect({ signal, stdout }).toEqual({ signal: "SIGINT", stdout: "" });
});

test("nothing of all this changed anything", async () => {
  await doctor();
  const { requests } = (await cloud().control("requests")) as {
    requests: readonly { action: string; outcome: string }[];
  };
  const changing = requests.filter(({ action }) => !action.startsWith("Describe"));
  expect(changing.map(({ action, outcome }) => `${action} ${outcome}`).toSorted()).toEqual([
    "CreateSecurityGroup DryRunOperation",
    "RunInstances DryRunOperation",
  ]);
});
