/** The cloud's own clients, as Debian has them, see and end in the local cloud what the program has made there. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CloudFixture, openFixture, region } from "../../support/cloud-fixture.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const awsCli = Bun.which("aws");
const playbooks = Bun.which("ansible-playbook");
const amazonAws = "/usr/lib/python3/dist-packages/ansible_collections/amazon/aws";
const ansibleLack =
  playbooks !== null && existsSync(amazonAws) && existsSync("/usr/lib/python3/dist-packages/boto3")
    ? undefined
    : "the packages ansible and python3-boto3 are not installed";

/** A cluster of three nodes, made by the program. */
async function createCluster(fixture: CloudFixture) {
  const backend = await fixture.open(region);
  await fixture.create(backend, fixture.request("foreign", {}), neverAborted);
  return backend;
}

/** Settings of this user must not count. */
const clientVariables = ({ cloud }: CloudFixture) => ({
  PATH: process.env["PATH"],
  HOME: process.env["HOME"],
  LC_ALL: "C.UTF-8",
  AWS_CONFIG_FILE: "/dev/null",
  AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
  AWS_ACCESS_KEY_ID: cloud.accessKeyId,
  AWS_SECRET_ACCESS_KEY: cloud.secretAccessKey,
  AWS_DEFAULT_REGION: region,
  AWS_EC2_METADATA_DISABLED: "true",
  AWS_MAX_ATTEMPTS: "1",
  AWS_PAGER: "",
});

async function outputOf(argv: readonly string[], env: Record<string, string | undefined>) {
  const child = Bun.spawn([...argv], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new Error(`${argv.join(" ")} ended with ${status}: ${stderr}${stdout}`);
  return stdout;
}

describe.skipIf(awsCli === null)(`awscli (${awsCli === null ? "not installed" : "here"})`, () => {
  test("lists, describes, tags, restarts, stops and ends a cluster", async () => {
    await using fixture = await openFixture({});
    const backend = await createCluster(fixture);
    const { cloud } = fixture;
    const run = async (command: string, query?: string): Promise<unknown> => {
      const words = [...command.split(" "), ...(query === undefined ? [] : ["--query", query])];
      const to = ["--endpoint-url", cloud.endpoint, "--output", "json"];
      const text = await outputOf([awsCli!, "ec2", ...to, ...words], clientVariables(fixture));
      return text.trim() === "" ? undefined : JSON.parse(text);
    };
    const ids = (await run(
      "describe-instances --filters Name=tag:cluster-e2e:cluster-id,Values=foreign",
      "Reservations[].Instances[].InstanceId",
    )) as readonly string[];
    expect(ids.toSorted()).toEqual(
      cloud
        .instances()
        .map(({ instanceId }) => instanceId)
        .toSorted(),
    );
    const [one = "", other = ""] = ids;
    const [status, tags, volumes, interfaces] = await Promise.all([
      run(
        `describe-instance-status --instance-ids ${one}`,
        "InstanceStatuses[].[InstanceState.Name,InstanceStatus.Status,SystemStatus.Status]",
      ),
      run(
        `describe-tags --filters Name=resource-id,Values=${one} Name=key,Values=cluster-e2e:role`,
        "Tags[].[ResourceType,Value]",
      ),
      run(
        `describe-volumes --filters Name=attachment.instance-id,Values=${one}`,
        "Volumes[].[State,Size,Encrypted,Attachments[0].DeleteOnTermination,length(Tags)>`5`]",
      ),
      run(
        `describe-network-interfaces --filters Name=attachment.instance-id,Values=${one}`,
        "NetworkInterfaces[].[Status,Groups[0].GroupName,Attachment.InstanceId]",
      ),
    ]);
    const { tags: ownTags } = cloud.instances().find(({ instanceId }) => instanceId === one)!;
    expect(status).toEqual([["running", "ok", "ok"]]);
    expect(tags).toEqual([["instance", ownTags["cluster-e2e:role"]]]);
    expect(volumes).toEqual([["in-use", 60, true, true, true]]);
    expect(interfaces).toEqual([["in-use", "cluster-e2e-foreign", one]]);

    await run(`create-tags --resources ${one} ${other} --tags Key=team,Value=red`);
    await run(`delete-tags --resources ${other} --tags Key=team`);
    expect(await run("describe-tags --filters Name=key,Values=team", "Tags[].ResourceId")).toEqual([
      one,
    ]);
    await run(`reboot-instances --instance-ids ${one}`);
    const running = `describe-instances --instance-ids ${one}`;
    expect(await run(running, "Reservations[].Instances[].State.Name")).toEqual(["running"]);
    expect((await backend.list(neverAborted)).map(({ id }) => id)).toEqual(["foreign"]);

    await run(`stop-instances --instance-ids ${other}`);
    await run(`wait instance-stopped --instance-ids ${other}`);
    const [listed] = await backend.list(neverAborted);
    expect(listed?.nodes.map(({ state }) => state).toSorted()).toEqual([
      "ending",
      "running",
      "running",
    ]);
    await run(`terminate-instances --instance-ids ${ids.join(" ")}`);
    await run(`wait instance-terminated --instance-ids ${ids.join(" ")}`);
    expect(await backend.list(neverAborted)).toEqual([]);
    await run(`delete-security-group --group-id ${cloud.groups()[0]?.groupId}`);
    expect(cloud.groups()).toEqual([]);
  });
});

const playbook = `
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - amazon.aws.ec2_instance_info:
        filters: { "tag:cluster-e2e:cluster-id": foreign, instance-state-name: running }
      register: found
    - assert:
        that: found.instances | length == 3
    - amazon.aws.ec2_tag:
        resource: "{{ found.instances[0].instance_id }}"
        tags: { team: red }
      register: tagged
    - assert:
        that: tagged is changed and tagged.tags.team == "red"
    - amazon.aws.ec2_vol_info:
        filters: { attachment.instance-id: "{{ found.instances[0].instance_id }}" }
      register: disks
    - assert:
        that: disks.volumes | length == 1 and disks.volumes[0].encrypted
    - amazon.aws.ec2_instance:
        state: absent
        filters: { "tag:cluster-e2e:cluster-id": foreign }
        wait: true
`;

describe.skipIf(ansibleLack !== undefined)(
  `Ansible's amazon.aws (${ansibleLack ?? "here"})`,
  () => {
    test("finds, tags and ends a cluster", async () => {
      await using folder = await scratchFolder();
      await using fixture = await openFixture({});
      const backend = await createCluster(fixture);
      const file = join(folder.path, "playbook.yml");
      await writeFile(file, playbook);
      const environment = {
        ...clientVariables(fixture),
        ANSIBLE_LOCAL_TEMP: folder.path,
        ANSIBLE_PYTHON_INTERPRETER: "/usr/bin/python3",
        AWS_URL: fixture.cloud.endpoint,
      };
      const words = ["-i", "localhost,", file];
      expect(await outputOf([playbooks!, ...words], environment)).toContain("failed=0");
      expect(await backend.list(neverAborted)).toEqual([]);
    });
  },
);
