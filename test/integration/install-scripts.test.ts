import { describe, expect, test } from "bun:test";
import { chmod, chown, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { layouts } from "../../src/platform/layouts/find-layout.ts";
import { prepareScript } from "../../src/platform/phases/prepare-script.ts";
import { completeScript } from "../../src/platform/phases/remote-script.ts";
import { selinuxScript } from "../../src/platform/phases/selinux.ts";
import { serveScript } from "../../src/platform/phases/serve.ts";
import { fetchScript } from "../../src/platform/phases/fetch-artifact.ts";
import { genconfScript } from "../../src/platform/phases/genconf.ts";
import { versionScript } from "../../src/platform/phases/check-version.ts";
import { bootstrapServer } from "../../src/platform/phases/bootstrap-server.ts";
import { installRunner, startInstallScript } from "../../src/platform/phases/start-install.ts";
import { logsScript } from "../../src/platform/node-logs.ts";
import { secretsScript } from "../../src/platform/cluster-secrets.ts";
import { superuserScript } from "../../src/platform/readiness/ask-on-master.ts";
import { nodeScript } from "../../src/platform/readiness/node-script.ts";
import { resolversScript } from "../../src/platform/resolvers.ts";
import { scratchFolder } from "../support/scratch-folder.ts";
import { intoFolder } from "./install-machine.ts";

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  argv: readonly string[],
  stdin: string,
  environment: Record<string, string> | undefined,
): Promise<Ended> {
  const child = Bun.spawn([...argv], {
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
    ...(environment && { env: environment }),
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { status: await child.exited, stdout, stderr };
}

const secret = "0123456789abcdef0123456789abcdef";
const url = `http://10.0.0.1:18080/${secret}`;
const server = {
  address: "10.0.0.1",
  port: 18_080,
  secret,
  nodeAddresses: ["10.0.0.1", "10.0.0.2"],
  installScript: "cluster_install.sh",
};
const superuser = superuserScript({ layout: layouts[0], loginBody: '{"uid": "a\\\\"b"}' });
const scripts: readonly (readonly [name: string, text: string])[] = [
  ["prepare", completeScript(prepareScript)],
  ["selinux", completeScript(selinuxScript)],
  ["serve", completeScript(serveScript(server))],
  ["fetch", fetchScript],
  ["version", versionScript],
  ["genconf", genconfScript],
  ["node", nodeScript],
  ["logs", logsScript],
  ["secrets", secretsScript],
  ["resolvers", resolversScript],
  ["superuser", superuser],
  ...layouts.flatMap((layout): (readonly [string, string])[] => [
    [`start ${layout.name}`, completeScript(startInstallScript(layout, "public_agent", url))],
    [`runner ${layout.name}`, installRunner(layout, "public_agent", url)],
  ]),
];

/** A name on the path may be a version manager's, with nothing behind it. */
const canRun = (name: string): boolean => Bun.which(name) !== null && Bun.spawnSync([name, "--version"]).success;

describe("every script for nodes", () => {
  test.each(scripts)("%s is read by sh", async (_name, text) => {
    expect(await run(["sh", "-n"], text, undefined)).toMatchObject({ status: 0, stderr: "" });
  });

  test.skipIf(Bun.which("shellcheck") === null).each(scripts)("%s pleases shellcheck", async (_name, text) => {
    expect((await run(["shellcheck", "--shell=sh", "-"], text, undefined)).stdout).toBe("");
  });

  test.each(["python3", "python2.7"].filter(canRun))("the bootstrap server is read by %s", async (python) => {
    const compile = "import sys; compile(sys.stdin.read(), 'server', 'exec')";
    expect(await run([python, "-c", compile], bootstrapServer, undefined)).toMatchObject({ status: 0, stderr: "" });
  });
});

interface Family {
  readonly name: string;
  readonly osRelease: string;
  readonly managers: readonly string[];
  /** Programs that are there already. */
  readonly present?: readonly string[];
  readonly expected: readonly string[];
  /** A program that its package does not bring. */
  readonly lost?: string;
  /** How often the first of the managers fails, and what it says then. */
  readonly failures?: { readonly count: number; readonly word: string };
}

const dcosNeeds = ["bash", "curl", "tar", "xz", "docker", "unzip", "ipset", "ping"];
const families: readonly Family[] = [
  {
    name: "Debian 12",
    osRelease: 'ID=debian\nVERSION_ID="12"\n',
    managers: ["apt-get"],
    expected: [
      "apt-get -q update",
      "apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install" +
        " bash curl tar xz-utils docker.io unzip ipset iputils-ping chrony",
    ],
  },
  {
    name: "CentOS 7",
    osRelease: 'ID="centos"\nVERSION_ID="7"\n',
    managers: ["yum"],
    present: ["curl"],
    expected: [
      "curl -fsSL --retry 3 --connect-timeout 20 https://download.docker.com/linux/centos/docker-ce.repo -o /etc/yum.repos.d/docker-ce.repo",
      "yum -q -y install bash tar xz docker-ce unzip ipset iputils chrony",
    ],
  },
  {
    name: "RHEL 9",
    osRelease: 'ID="rhel"\nVERSION_ID="9.4"\n',
    managers: ["yum", "dnf"],
    present: ["curl"],
    expected: [
      "curl -fsSL --retry 3 --connect-timeout 20 https://download.docker.com/linux/rhel/docker-ce.repo -o /etc/yum.repos.d/docker-ce.repo",
      "dnf -q -y install bash tar xz docker-ce unzip ipset iputils chrony",
    ],
  },
  {
    name: "Amazon Linux 2",
    osRelease: 'ID="amzn"\nVERSION_ID="2"\n',
    managers: ["yum", "amazon-linux-extras"],
    present: ["curl"],
    expected: ["amazon-linux-extras enable docker", "yum -q -y install bash tar xz docker unzip ipset iputils chrony"],
  },
];

const harmless = "sh sed grep cut tr tail head cat mktemp rm date mkdir wc chmod setpriv".split(" ");

interface Prepared extends Ended {
  readonly calls: readonly string[];
  readonly repository: string;
}

/**
 * Runs the script in a folder that stands for `/`, with nothing on its path but what is linked there by name, and as nobody where the tests
 * run as root: whatever goes wrong, no real package manager is reached, and none could do anything.
 */
async function prepare(family: Family, needs: readonly string[], docker: "yes" | "no"): Promise<Prepared> {
  await using folder = await scratchFolder();
  const root = folder.path;
  for (const path of ["bin", "etc/yum.repos.d", "var/lib", "tmp"]) await mkdir(join(root, path), { recursive: true });
  await writeFile(join(root, "etc/os-release"), family.osRelease);
  await writeFile(join(root, "etc/fstab"), "");
  const repository = join(root, "etc/yum.repos.d/CentOS-Base.repo");
  await writeFile(repository, centosRepository);
  const program = async (name: string, text: string): Promise<void> => {
    await writeFile(join(root, "bin", name), `#!${root}/bin/sh\n${text}\n`);
    await chmod(join(root, "bin", name), 0o755);
  };
  for (const name of harmless) await symlink(Bun.which(name) ?? `/nowhere/${name}`, join(root, "bin", name));
  await program("timeout", 'shift; exec "$@"');
  await program("sleep", "");
  const brought = needs.filter((name) => name !== family.lost);
  for (const name of [...family.managers, ...(family.present ?? [])])
    await program(name, recorder(root, name, name === family.managers[0] ? family.failures : undefined, brought));
  await program("systemctl", 'case $* in --version) echo "systemd 219" ;; is-active*) exit 3 ;; esac');
  for (const name of ["systemd-run", "getent", "swapoff"]) await program(name, "");
  await program("systemd-detect-virt", "exit 1");
  const path = `PATH=${root}/bin\n`;
  // Docker comes with its package.
  const script = intoFolder(completeScript(prepareScript), root)
    .replace(`PATH=${root}/bin:/usr/bin:/bin\n`, path)
    .replace("start_docker() {", "start_docker() {\n  return 0");
  if (script.split("PATH=").length !== 2 || !script.includes(path))
    throw new Error("The script would leave its folder");
  const argv = ["/bin/sh", "-s", "--", "e2e-prepare", docker, "/etc/systemd/system/dcos.target", ...needs];
  const ended = await run([...(await asNobody(root)), ...argv], script, {
    PATH: join(root, "bin"),
    TMPDIR: join(root, "tmp"),
  });
  const calls = await readFile(join(root, "calls"), "utf8").catch(() => "");
  return { ...ended, calls: calls.split("\n").filter(Boolean), repository: await readFile(repository, "utf8") };
}

/** A program that only writes down how it was called, and leaves what it would have fetched. */
const recorder = (root: string, name: string, failures: Family["failures"], brought: readonly string[]): string => `
echo "${name} $*" | sed 's|${root}||' >>${root}/calls
[ "$(wc -l <${root}/calls)" -gt ${failures?.count ?? 0} ] || { echo '${failures?.word}' >&2; exit 100; }
case "$*" in *install*) for p in ${brought.join(" ")}; do [ -e ${root}/bin/$p ] || { echo >${root}/bin/$p; chmod 755 ${root}/bin/$p; }; done ;; esac
case "$*" in *docker-ce.repo*) : >${root}/etc/yum.repos.d/docker-ce.repo ;; esac`;

/** The words that take root's rights away; none are needed where the tests have no such rights. */
async function asNobody(root: string): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return [];
  const nobody = 65_534;
  for (const path of [
    "",
    "bin",
    "etc",
    "etc/yum.repos.d",
    "etc/yum.repos.d/CentOS-Base.repo",
    "etc/fstab",
    "var",
    "var/lib",
    "tmp",
  ])
    await chown(join(root, path), nobody, nobody);
  return ["/usr/bin/setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups", "--no-new-privs"];
}

const centosRepository = `[base]
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=os&infra=$infra
#baseurl=http://mirror.centos.org/centos/$releasever/os/$basearch/
gpgcheck=1
`;

describe("preparing a node", () => {
  test.each(families.map((family) => [family.name, family] as const))(
    "%s: installs what is missing",
    async (_name, family) => {
      const { status, stderr, calls } = await prepare(family, dcosNeeds, "yes");
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(calls).toEqual([...family.expected]);
    },
  );

  test("CentOS 7 is pointed to the vault", async () => {
    const { repository } = await prepare(families[1]!, ["bash"], "no");
    expect(repository).toBe(`[base]
#mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=os&infra=$infra
baseurl=http://vault.centos.org/7.9.2009/os/$basearch/
gpgcheck=1
`);
  });

  test("nothing is asked of any package manager where nothing is missing", async () => {
    const family = { ...families[0]!, present: ["bash", "curl", "xz"] };
    const { status, calls } = await prepare(family, ["bash", "curl", "xz"], "no");
    expect(status).toBe(0);
    expect(calls).toEqual([]);
  });

  test("a package manager that fails is asked three times, then its last word is told", async () => {
    const family = { ...families[0]!, failures: { count: 99, word: "E: the mirror is down" } };
    const { status, stderr, calls } = await prepare(family, ["bash"], "no");
    expect(status).toBe(1);
    expect(stderr).toEndWith("failed: installing bash failed: E: the mirror is down\n");
    expect(calls.length).toBe(3);
  });

  test("a program that its package did not bring is named", async () => {
    const { status, stderr } = await prepare({ ...families[0]!, lost: "curl" }, ["bash", "curl"], "no");
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "failed: curl is still missing although its package, curl, was installed\n",
    });
  });

  test("a lock that somebody else holds is waited for", async () => {
    const word = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)";
    const family = { ...families[0]!, failures: { count: 7, word } };
    const { status, stdout, calls } = await prepare(family, ["bash"], "no");
    expect(status).toBe(0);
    expect(stdout).toContain("now: waiting for the end of another package installation");
    expect(calls.length).toBe(7 + 2);
  });
});
