/** What the cloud promises, as all backends do, on machines without the platform's packages; and what only it does. */
import { expect, test } from "bun:test";
import { type Subject, testConformance } from "./support/conformance.ts";
import { bareNodeImage } from "./support/container-engine.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const { backend: cloud, artifact } = shareBackend(async () =>
  startTestCloud("container", bareNodeImage),
);

const subject: Subject = {
  backend: cloud,
  artifact,
  id: () => "default",
  program: "cluster-cloud",
  options: () => "--variant oss --linux-distribution debian-12 --agents 2".split(" "),
  agents: 2,
  publicAgents: 1,
  checks: "credentials,account,region,clock",
  plan: ["4 × m5.large: 1 master, 2 agents, 1 public agent"],
  end: [/The cluster ends .*\d\d:\d\d UTC \(in 1 h 5\d min\)/, /The cost is at most \$/],
  things: async (id) =>
    (await cloud().machines())
      .filter(({ tags }) => tags["cluster-e2e:cluster-id"] === id)
      .map(({ instanceId }) => instanceId),
  size: 4,
};

testConformance(subject);

test("a sudo that insists on a terminal is named as the reason, with one hint for all nodes", async () => {
  const rule = "/etc/sudoers.d/e2e-requiretty";
  const onAgents = async (...words: readonly string[]) =>
    cloud().run(["run", "--no-test-env", "--node", "agents", ...words]);
  const config = `${cloud().folder}/agents.ssh`;
  await Bun.write(config, (await cloud().run(["inspect", "--output", "ssh-config"])).stdout);
  expect(await onAgents(`echo 'Defaults requiretty' >${rule}`)).toMatchObject({ status: 0 });
  const [refused, json, single] = [
    await onAgents("true"),
    await onAgents("--output", "json", "true"),
    await cloud().run(["run", "--no-test-env", "--node", "agent_0", "true"]),
  ];
  // On a terminal, sudo goes on working.
  for (const name of ["agent_0", "agent_1"])
    await Bun.$`ssh -tt -F ${config} ${name} sudo rm ${rule}`.quiet();
  expect([refused.status, single.status]).toEqual([255, 255]);
  for (const { stderr } of [refused, single]) {
    expect(stderr).toContain("agent_0 (");
    expect(stderr).toContain("did not run the command as root: sudo: ");
    expect(stderr.split("requiretty")).toHaveLength(2);
  }
  expect(refused.stderr).toContain("agent_1 (");
  const error = { hint: expect.stringContaining("requiretty") };
  expect(JSON.parse(json.stdout)).toMatchObject({ nodes: [{ error }, { error }] });
  expect(await onAgents("true")).toMatchObject({ status: 0, stderr: "" });
});

// Shows R62.
test("list shows the clusters of all regions, and another region's error names this one", async () => {
  const everywhere = await cloud().run(["list", "--all-regions", "--cloud-region", "us-east-1"]);
  expect(everywhere.stdout).toMatch(/^us-west-2 +default +running/m);
  const elsewhere = await cloud().run(["inspect", "--cloud-region", "us-east-1"]);
  expect(elsewhere).toMatchObject({ status: 3, stdout: "" });
  expect(elsewhere.stderr).toContain("us-west-2");
});

// The machines of this cloud are containers.
test("the clock of a container's computer stays as it is", async () => {
  const before = Date.now() - performance.now();
  const wrong = await cloud().run(["fault", "clock", "agent_0", "--offset", "+2s"]);
  expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining("it is a container") });
  expect(Math.abs(Date.now() - performance.now() - before)).toBeLessThan(1_000);
});

test("a slow network begins, or the error names what the kernel lacks", async () => {
  const fault = (line: string) => cloud().run(["fault", ...line.split(" ")]);
  const slow = await fault("network agent_0 --delay 300ms --loss 1% --rate 1mbit --for 10m");
  if (slow.status !== 0)
    expect(slow).toMatchObject({ status: 5, stderr: expect.stringContaining("sch_netem") });
  else {
    expect(slow.stderr).toMatch(/a round trip takes 3\d\d(?:\.\d+)? ms/);
    expect(await fault("heal")).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^[0-9a-f]{8}\n$/),
    });
  }
  const queues = await cloud().run([
    "run",
    "--no-test-env",
    "--node",
    "agent_0",
    "tc qdisc show | grep -c e2e",
  ]);
  expect(queues.stdout).toBe("0\n");
});
