/** The nodes' part of an artifact, in a container that has the bootstrap server on loopback: each node in turn. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { writeArtifact } from "../../../../src/platform/folder/pack.ts";
import { readPlatformFolder } from "../../../../src/platform/folder/read-folder.ts";
import bootstrapServer from "../../../../src/platform/install/bootstrap/bootstrap-server.py" with { type: "text" };
import { accepted } from "../../../../src/model/checked.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { writePlatform } from "../../../support/platform-folder.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const image = "localhost/cluster-e2e-machine:debian-12";
const hasImage =
  Bun.which("docker") !== null && Bun.spawnSync(["docker", "image", "inspect", image]).success;
const lack = hasImage
  ? "here"
  : `skipped: needs docker and ${image}; scripts/setup makes both ready`;

const urlSecret = "0123456789abcdef0123456789abcdef";
const masters = ["127.0.0.1", "127.0.0.5", "127.0.0.6"];
const configuration = {
  bootstrap_url: `http://127.0.0.1:18080/${urlSecret}`,
  cluster_name: "demo",
  master_list: masters,
  agent_list: ["127.0.0.2", "127.0.0.3"],
  public_agent_list: ["127.0.0.4"],
  extra_config: { depth: 3 },
};

const platform = {
  "platform.yaml": `
name: small
version: "1.0"
web: { port: 443, path: /ui, scheme: https, certificate: /etc/ca.pem }
logs: { units: [small, other], files: [/var/log/small.log] }
secrets: [/etc/small.key]
`,
  install: `#!/bin/sh
env | grep ^CLUSTER_ | sort >/environment
env | grep -c ${urlSecret} >/leaks
echo "$1 in $(pwd), by $(id -un), mask $(umask), $(ls)"
touch leftover
[ ! -e /interrupt ] || { rm /interrupt; kill -9 $PPID; sleep 1; }
[ ! -e /fail ] || { echo broken; exit 7; }
`,
  check: `#!/bin/sh
echo "in $(pwd)"
[ ! -e /unready ] || { echo "no quorum on $CLUSTER_NODE" >&2; echo; exit 3; }
`,
  "tests/test.sh": "#!/bin/sh\n",
};

/** What the nodes' curl is here: it notes the argument lists of all processes. */
const curl = `#!/bin/sh
cat /proc/[0-9]*/cmdline >>/arguments 2>/dev/null
exec /usr/bin/curl "$@"
`;

const start = `
cd /packed
chmod 755 curl && mv curl /usr/local/bin/curl
bash artifact.sh --genconf
sed 's/DEADLINE/'$(($(date +%s) + 600))'/' settings >settings.json
python3 bootstrap-server.py settings.json </dev/null >/dev/null 2>&1 &
until /usr/bin/curl -fs -o /dev/null http://127.0.0.1:18080/${urlSecret}/platform_install.sh; do sleep 0.1; done
cp genconf/serve/platform_install.sh /platform_install.sh
`;

const container: { id?: string } = {};

async function docker(...words: readonly string[]): Promise<string> {
  const child = Bun.spawn(["docker", ...words], { stdout: "pipe", stderr: "pipe" });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    child.stdout.text(),
    child.stderr.text(),
  ]);
  if (status !== 0) throw new Error(`docker ${words[0]}: ${stderr}`);
  return stdout.trim();
}

/** Runs lines as root. They go through stdin, so that no argument list has them. */
async function run(lines: string) {
  const child = Bun.spawn(["docker", "exec", "-i", container.id!, "bash", "-s"], {
    stdin: new Blob([lines]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    child.stdout.text(),
    child.stderr.text(),
  ]);
  return { status, stdout, stderr };
}

/** Installs as the node with this address, on which nothing is installed yet unless \`isAgain\`. */
const install = async (address: string, role: string, { isAgain = false } = {}) =>
  run(
    `${isAgain ? "" : "rm -rf /opt/cluster-platform"}\necho ${address} >/address\nbash /platform_install.sh --no-block ${role}`,
  );

beforeAll(async () => {
  if (!hasImage) return;
  await using scratch = await scratchFolder();
  const folder = await writePlatform(join(scratch.path, "small"), platform);
  const work = join(scratch.path, "work");
  const serve = "/packed/genconf/serve";
  const nodes = [...masters, ...configuration.agent_list, ...configuration.public_agent_list];
  const settings = {
    folder: serve,
    state: "/packed/state",
    address: "127.0.0.1",
    port: 18080,
    secret: urlSecret,
    nodes,
  };
  const texts: Readonly<Record<string, string>> = {
    settings: JSON.stringify({ ...settings, deadline: "DEADLINE" }).replace(
      '"DEADLINE"',
      "DEADLINE",
    ),
    "bootstrap-server.py": bootstrapServer,
    curl,
    "genconf/config.yaml": JSON.stringify(configuration),
    "genconf/ip-detect": "#!/bin/sh\ncat /address\n",
    "genconf/ip-detect-public": "#!/bin/sh\ncat /public\n",
  };
  for (const [path, text] of Object.entries(texts)) await Bun.write(join(work, path), text);
  await writeArtifact(
    accepted(await readPlatformFolder(folder, neverAborted)),
    join(work, "artifact.sh"),
    neverAborted,
  );
  container.id = await docker(
    "run",
    "--detach",
    "--rm",
    "--init",
    "--network=none",
    image,
    "sleep",
    "1200",
  );
  await docker("cp", work, `${container.id}:/packed`);
  const started = await run(`set -e\n${start}`);
  if (started.status !== 0) throw new Error(started.stderr);
});

afterAll(async () => {
  if (container.id !== undefined) await docker("rm", "--force", container.id);
});

describe.skipIf(!hasImage)(`installing a platform's folder on nodes (${lack})`, () => {
  test.each([
    ["master", 0, "127.0.0.1"],
    ["master", 2, "127.0.0.6"],
    ["agent", 1, "127.0.0.3"],
    ["public_agent", 0, "127.0.0.4"],
  ])("the environment of %s_%d", async (role, index, address) => {
    const { status, stdout, stderr } = await install(address, role);
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: `${role} in /opt/cluster-platform/folder, by root, mask 0022, check\ninstall\nplatform.yaml\ntests\n`,
      stderr: "cat: /public: No such file or directory\n",
    });
    const variables = [
      "CLUSTER_AGENTS=127.0.0.2 127.0.0.3",
      "CLUSTER_CONFIG_FILE=/opt/cluster-platform/config.json",
      "CLUSTER_ID=demo",
      `CLUSTER_INDEX=${index}`,
      `CLUSTER_MASTERS=${masters.join(" ")}`,
      `CLUSTER_NODE=${role}_${index}`,
      `CLUSTER_PRIVATE_ADDRESS=${address}`,
      `CLUSTER_PUBLIC_ADDRESS=${address}`,
      "CLUSTER_PUBLIC_AGENTS=127.0.0.4",
      `CLUSTER_ROLE=${role}`,
      "CLUSTER_SECRET_FILE=/opt/cluster-platform/secret",
    ];
    const found = await run(
      "cat /environment; echo; env -i sh -c '. /opt/cluster-platform/environment; env' | grep ^CLUSTER_ | sort",
    );
    expect(found.stdout.split("\n")).toEqual([...variables, "", ...variables, ""]);
  });

  test("the files that other commands read, and who may read them", async () => {
    await install("127.0.0.1", "master");
    const { stdout } = await run(`
      cd /opt/cluster-platform
      stat -c '%A %U %n' . .[a-z]* * folder/* 2>/dev/null
      for each in version.json web.json config.json secret-files log-units log-files; do echo "$each:"; cat $each; done
      sed -n 's/^# platform: //p' /packed/artifact.sh | cmp - platform.json && [ "$(cat secret)" = "$(cat /packed/genconf/secret)" ] && echo same`);
    expect(stdout.split("\n")).toEqual([
      "drwxr-xr-x root .",
      "-rwxr-xr-x root check-node",
      "-rw------- root config.json",
      "-rw-r--r-- root environment",
      "drwxr-xr-x root folder",
      "-rw-r--r-- root installed",
      "-rw-r--r-- root log-files",
      "-rw-r--r-- root log-units",
      "-rw-r--r-- root platform.json",
      "-rw------- root secret",
      "-rw-r--r-- root secret-files",
      "-rw-r--r-- root version.json",
      "-rw-r--r-- root web.json",
      "-rwxr-xr-x root folder/check",
      "-rwxr-xr-x root folder/install",
      "-rw-r--r-- root folder/leftover",
      "-rw-r--r-- root folder/platform.yaml",
      "drwxr-xr-x root folder/tests",
      "version.json:",
      '{"variant":"none","version":"1.0","name":"small"}',
      "web.json:",
      '{"ssl_enabled": true, "web": {"path": "/ui", "port": 443}}',
      "config.json:",
      "{",
      '  "depth": 3',
      "}",
      "secret-files:",
      "/etc/small.key",
      "log-units:",
      "small",
      "other",
      "log-files:",
      "/var/log/small.log",
      "same",
      "",
    ]);
  });

  test("a public address of its own", async () => {
    await run("echo 198.51.100.7 >/public");
    await install("127.0.0.2", "agent");
    const { stdout } = await run("grep PUBLIC_ADDRESS /environment; echo '$(id)' >/public");
    expect(stdout).toBe("CLUSTER_PUBLIC_ADDRESS=198.51.100.7\n");
    await install("127.0.0.2", "agent");
    expect((await run("grep PUBLIC_ADDRESS /environment; rm /public")).stdout).toBe(
      "CLUSTER_PUBLIC_ADDRESS=127.0.0.2\n",
    );
  });

  test("after an interruption it begins again, with a fresh folder; after a success it does nothing", async () => {
    await run("touch /interrupt");
    const { status } = await install("127.0.0.2", "agent");
    expect(status).toBe(137);
    expect((await run("ls /opt/cluster-platform/installed")).status).not.toBe(0);
    // What a crash in the middle of a write may leave.
    await run(
      "cd /opt/cluster-platform && mkdir -p .fetched/folder && echo x >.fetched/folder/install && : >secret",
    );
    const again = await install("127.0.0.2", "agent", { isAgain: true });
    expect(again).toMatchObject({ status: 0, stdout: expect.not.stringContaining("leftover") });
    expect((await run("grep -xf /packed/genconf/secret /opt/cluster-platform/secret")).status).toBe(
      0,
    );
    expect(await install("127.0.0.2", "agent", { isAgain: true })).toMatchObject({
      status: 0,
      stdout: "",
    });
  });

  test("a failure's status and output pass through, and there is no marker", async () => {
    await run("touch /fail");
    const failed = await install("127.0.0.2", "agent");
    expect(failed).toMatchObject({ status: 7, stdout: expect.stringMatching(/\nbroken\n$/) });
    expect((await run("rm /fail; ls /opt/cluster-platform/installed")).status).not.toBe(0);
    expect(await install("127.0.0.2", "agent", { isAgain: true })).toMatchObject({ status: 0 });
  });

  test("an address that no node has, and an unknown role", async () => {
    expect(await install("127.0.0.9", "agent")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(
        "the address of this node, 127.0.0.9, is none of the cluster",
      ),
    });
    expect(await install("$(id)", "agent")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("ip-detect does not print the private address"),
    });
    expect(await install("127.0.0.2", "slave")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("the role"),
    });
  });

  test("the check's last line and status", async () => {
    await install("127.0.0.2", "agent");
    const check = async () => run("cd / && /opt/cluster-platform/check-node");
    expect(await check()).toEqual({
      status: 0,
      stdout: "in /opt/cluster-platform/folder\n",
      stderr: "",
    });
    await run("touch /unready");
    expect(await check()).toEqual({ status: 3, stdout: "no quorum on agent_0\n", stderr: "" });
    await run("rm /unready");
  });

  test("the bootstrap server's URL is in no argument list and in no environment", async () => {
    await run("rm -f /arguments");
    await install("127.0.0.2", "agent");
    const { stdout } = await run(
      `tr '\\0' ' ' </arguments | grep -c -- '--config - '; grep -c ${urlSecret} /arguments; cat /leaks`,
    );
    expect(stdout).toBe("1\n0\n0\n");
  });
});
