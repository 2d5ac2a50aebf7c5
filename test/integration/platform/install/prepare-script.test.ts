import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { dcosLayout } from "../../../../src/platform/layouts/dcos.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import { neededPrograms } from "../../../../src/platform/install/prepare/prepare-node.ts";
import { leastFacts } from "../../../support/platform-facts.ts";
import { prepare, runShell } from "../../../support/prepare-machine.ts";
import type { Family } from "../../../support/prepare-machine.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const dcosNeeds = neededPrograms(dcosLayout, "enterprise");
const families: readonly Family[] = [
  {
    name: "Debian 12",
    osRelease: 'ID=debian\nVERSION_ID="12"\n',
    managers: ["apt-get"],
    expected: [
      "apt-get -q update",
      "apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install" +
        " bash curl tar xz-utils docker.io unzip ipset iputils-ping net-tools bind9-dnsutils chrony",
    ],
  },
  {
    name: "Debian 13",
    osRelease: 'ID=debian\nVERSION_ID="13"\n',
    managers: ["apt-get", "apt-cache"],
    expected: [
      "apt-get -q update",
      "apt-cache show docker-cli",
      "apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install" +
        " bash curl tar xz-utils docker.io unzip ipset iputils-ping net-tools bind9-dnsutils chrony docker-cli",
    ],
  },
  {
    name: "CentOS 7",
    osRelease: 'ID="centos"\nVERSION_ID="7"\n',
    managers: ["yum"],
    present: ["curl"],
    expected: [
      "curl -fsSL --retry 3 --connect-timeout 20 https://download.docker.com/linux/centos/docker-ce.repo -o /etc/yum.repos.d/docker-ce.repo",
      "yum -q -y --setopt=skip_missing_names_on_install=0 install bash tar xz docker-ce unzip ipset iputils net-tools bind-utils chrony",
    ],
  },
  {
    name: "RHEL 7",
    osRelease: 'ID="rhel"\nVERSION_ID="7.9"\n',
    managers: ["yum"],
    present: ["curl"],
    expected: [
      "curl -fsSL --retry 3 --connect-timeout 20 https://download.docker.com/linux/centos/docker-ce.repo -o /etc/yum.repos.d/docker-ce.repo",
      "yum -q -y --setopt=skip_missing_names_on_install=0 --enablerepo=*extras* install bash tar xz docker-ce unzip ipset iputils net-tools bind-utils chrony",
    ],
  },
  {
    name: "RHEL 9",
    osRelease: 'ID="rhel"\nVERSION_ID="9.4"\n',
    managers: ["yum", "dnf"],
    present: ["curl"],
    expected: [
      "curl -fsSL --retry 3 --connect-timeout 20 https://download.docker.com/linux/rhel/docker-ce.repo -o /etc/yum.repos.d/docker-ce.repo",
      "dnf -q -y install bash tar xz docker-ce unzip ipset iputils net-tools bind-utils chrony",
    ],
  },
  {
    name: "Amazon Linux 2",
    osRelease: 'ID="amzn"\nVERSION_ID="2"\n',
    managers: ["yum", "amazon-linux-extras"],
    present: ["curl"],
    expected: [
      "amazon-linux-extras enable docker",
      "yum -q -y --setopt=skip_missing_names_on_install=0 install bash tar xz docker unzip ipset iputils net-tools bind-utils chrony",
    ],
  },
];

/** Every service is active, also one that keeps the time. */
const keepsTime = 'case $* in --version) echo "systemd 219" ;; esac';

const familyOf = (name: string): Family => families.find((family) => family.name === name)!;

describe("preparing a node", () => {
  test.each(families.map((family) => [family.name, family] as const))(
    "%s: installs what is missing",
    async (_name, family) => {
      const { status, stderr, calls } = await prepare(family, dcosNeeds, { conditions: "docker" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(calls).toEqual([...family.expected]);
    },
  );

  // Shows R111.
  test("CentOS 7 uses the vault repository", async () => {
    const { repository } = await prepare(familyOf("CentOS 7"), ["bash"]);
    expect(repository).toBe(`[base]
#mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=os&infra=$infra
baseurl=http://vault.centos.org/7.9.2009/os/$basearch/
gpgcheck=1
`);
  });

  test("no package manager runs if nothing is missing", async () => {
    const family = { ...families[0]!, present: ["bash", "curl", "xz"] };
    const { status, calls } = await prepare(family, ["bash", "curl", "xz"]);
    expect(status).toBe(0);
    expect(calls).toEqual([]);
  });

  test("a package manager that fails is run three times, then its last message is reported", async () => {
    const family = { ...families[0]!, failures: { count: 99, word: "E: the mirror is down" } };
    const { status, stderr, calls } = await prepare(family, ["bash"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/bash.*: E: the mirror is down\n$/);
    expect(calls.length).toBe(3);
  });

  test("a mirror that apt-get doesn't reach is named, although only the package is unknown then", async () => {
    const lack = "W: Failed to fetch http://mirror/InRelease  Temporary failure resolving 'mirror'";
    const update = `echo "${lack}"; echo 'W: Some index files failed to download.'`;
    const apt = `case $* in *update*) ${update} ;; *) echo 'E: Unable to locate package bash' && exit 100 ;; esac`;
    const { stderr } = await prepare(familyOf("Debian 12"), ["bash"], {
      programs: { "apt-get": apt },
    });
    expect(stderr).toEndWith(`failed: E: Unable to locate package bash (${lack})\n`);
  });

  /** As yum of CentOS 7 does by default; see its manual page yum.conf(5). */
  const forgivingYum = `case $* in *skip_missing_names_on_install=0*) echo 'Error: No package etdc available.' >&2 && exit 1 ;; esac
echo 'No package etdc available.'`;
  test("CentOS 7: a package that doesn't exist is an error, although others do", async () => {
    const dnf = ["chrony", "etdc"];
    const { status, stderr } = await prepare(familyOf("CentOS 7"), [], {
      layout: { ...dcosLayout, packages: { apt: [], dnf } },
      programs: { rpm: "exit 1", yum: forgivingYum },
    });
    expect({ status, stderr: stderr.split("\n").at(-2) }).toEqual({
      status: 1,
      stderr: "failed: installing chrony etdc failed: Error: No package etdc available.",
    });
  });

  test("a program that is missing after the installation of its package is named", async () => {
    const { status, stderr } = await prepare({ ...families[0]!, lost: "curl" }, ["bash", "curl"]);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "failed: curl is still missing although its package, curl, was installed\n",
    });
  });

  test("waits for a lock that another process holds", async () => {
    const word = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)";
    const family = { ...families[0]!, failures: { count: 7, word } };
    const { status, stdout, calls } = await prepare(family, ["bash"]);
    expect(status).toBe(0);
    expect(stdout).toContain("now: waiting for another package installation to finish");
    expect(calls.length).toBe(7 + 2);
  });
});

const nothing: Family = {
  name: "nothing",
  osRelease: 'ID=debian\nVERSION_ID="12"\n',
  managers: [],
  expected: [],
};
const socket = (port: string): string =>
  `  sl  local_address rem_address   st\n   0: 3500007F:${port} 00000000:0000 0A 00000000:00000000\n`;

describe("conditions of a node", () => {
  // Shows R114.
  test("control groups version 2 is rejected before anything is installed, with alternatives", async () => {
    const programs = { stat: "echo cgroup2fs" };
    const { status, stderr, calls } = await prepare(families[0]!, ["bash"], {
      conditions: "docker,cgroups-1",
      programs,
    });
    expect(status).toBe(1);
    expect(stderr).toContain("the machine has cgroups 2");
    expect(stderr).toEndWith("Choose another.\n");
    expect(calls).toEqual([]);
  });

  // Shows R114.
  test("the stub of systemd-resolved on port 53 is turned off, and its servers are used directly", async () => {
    const { status, stderr, files } = await prepare(nothing, [], {
      conditions: "dns-port-free",
      programs: {
        ln: 'cat "$2" >"$3"',
        chmod: "",
        systemctl: `case $* in
  --version) echo 'systemd 252' ;;
  'restart systemd-resolved') grep -q '^DNSStubListener=no$' @/etc/systemd/resolved.conf.d/cluster-e2e.conf && : >@/proc/net/udp ;;
esac`,
      },
      files: {
        "proc/net/udp": socket("0035"),
        "proc/net/tcp": socket("0016"),
        "etc/resolv.conf": "nameserver 127.0.0.53\n",
        "run/systemd/resolve/resolv.conf": "nameserver 10.0.0.2\n",
      },
      reads: ["etc/resolv.conf"],
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(files["etc/resolv.conf"]).toBe("nameserver 10.0.0.2\n");
  });

  test("another program on port 53 is named", async () => {
    const { status, stderr } = await prepare(nothing, [], {
      conditions: "dns-port-free",
      programs: {
        ss: `echo 'udp UNCONN 0 0 127.0.0.1:53 0.0.0.0:* users:(("dnsmasq",pid=7,fd=4))'`,
      },
      files: { "proc/net/udp": socket("0035"), "proc/net/tcp": "" },
    });
    expect(status).toBe(1);
    expect(stderr).toContain("the platform needs port 53, but dnsmasq uses it");
  });

  test("waits for a clock that isn't synchronized yet", async () => {
    const timedatectl =
      "echo x >>@/asked; [ $(wc -l <@/asked) -lt 3 ] || echo 'System clock synchronized: yes'";
    const { status, files, stdout } = await prepare(nothing, [], {
      conditions: "clock-synchronized",
      programs: { timedatectl, systemctl: keepsTime },
      reads: ["asked"],
    });
    expect(status).toBe(0);
    expect(stdout).toContain("now: waiting for the clock");
    expect(files["asked"]).toBe("x\nx\nx\n");
  });

  test("a clock that is never synchronized is an error", async () => {
    const programs = { timedatectl: "echo 'NTP synchronized: no'", systemctl: keepsTime };
    const request = { conditions: "clock-synchronized", programs };
    const { status, stderr } = await prepare(nothing, [], request);
    expect(status).toBe(1);
    expect(stderr).toContain("the clock was not synchronized within 3 minutes");
  });

  test("in a container, Mesos and Docker stay in its own control group, and the user's settings are kept", async () => {
    const unit = "etc/systemd/system/docker.service.d/cluster-e2e.conf";
    const settings = "var/lib/dcos/mesos-slave-common";
    const request = {
      isContainer: true,
      programs: {
        touch: ': >>"$1"',
        chmod: "",
        systemctl:
          "case $1 in --version) echo 'systemd 252' ;; cat) echo 'ExecStart=/usr/sbin/dockerd -H fd:// $OPTS' ;; esac",
      },
      files: {
        "proc/1/cgroup": "12:cpu:/other\n9:memory:/docker/abc/init.scope\n",
        [settings]: "MESOS_OTHER=1\n",
      },
      reads: [unit, settings],
    };
    const { status, stderr, files } = await prepare(nothing, [], request);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(files[settings]).toBe(
      "MESOS_OTHER=1\nMESOS_SYSTEMD_ENABLE_SUPPORT=false\nMESOS_CGROUPS_ROOT=docker/abc/mesos\n",
    );
    const [line, command] = /^ExecStart=\/bin\/sh -c '([^']*)' docker(.*)$/m
      .exec(files[unit]!.replaceAll("\\\n", " "))!
      .slice(1);
    expect(command?.trim()).toBe("/usr/sbin/dockerd -H fd:// $OPTS");
    // The file system of the node is gone, and in a unit "$" and "%" are doubled.
    await using now = await scratchFolder();
    const code = line!
      .replaceAll("$$", "$")
      .replaceAll("%%", "%")
      .replaceAll(/\S+(?=\/proc\/|\/etc\/docker\/)/g, now.path);
    await Bun.write(
      join(now.path, "proc/1/cgroup"),
      "12:cpu:/other\n9:memory:/docker/restored/init.scope\n",
    );
    const start = async (): Promise<string> =>
      (await runShell(["sh", "-c", code, "docker", "echo"], "", undefined)).stdout;
    expect(await start()).toBe(
      "--exec-opt native.cgroupdriver=cgroupfs --cgroup-parent /docker/restored/docker\n",
    );
    await Bun.write(join(now.path, "etc/docker/daemon.json"), '{"cgroup-parent": "/mine"}');
    expect(await start()).toBe("\n");
  });

  test.each([
    ["active", true],
    ["activating", true],
    ["inactive", false],
    ["failed", false],
  ])(
    "a Docker that is %s is started with that control group, and restarted only if it must be",
    async (state, restarts) => {
      const systemctl = `echo "$*" >>@/systemctl
case "$*" in
  --version) echo 'systemd 252' ;;
  cat*) echo 'ExecStart=/usr/sbin/dockerd' ;;
  'is-active docker') echo ${state}; [ ${state} = active ] ;;
esac`;
      const { status, stderr, files } = await prepare(nothing, [], {
        isContainer: true,
        programs: { touch: ': >>"$1"', chmod: "", systemctl },
        files: { "proc/1/cgroup": "9:memory:/docker/abc/init.scope\n" },
        reads: ["systemctl"],
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const calls = (files["systemctl"] ?? "").split("\n");
      expect(calls).toContain("daemon-reload");
      expect(calls.includes("restart docker")).toBe(restarts);
    },
  );
});

describe("a platform that is a folder", () => {
  const layout = folderLayout({
    ...leastFacts,
    packages: { apt: ["etcd-server", "etcd-client"], dnf: ["etcd"] },
    kernelModules: ["ip_vs", "dm-crypt"],
  });
  const modprobe = 'echo "modprobe $*" >>@/calls';
  const install =
    "apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install";

  test("gets those of its packages that are missing, and its kernel modules, now and at the next boot", async () => {
    const { status, calls, files, stderr } = await prepare(familyOf("Debian 12"), [], {
      layout,
      programs: {
        modprobe,
        "dpkg-query": 'case $* in *etcd-client) echo "install ok installed" ;; *) exit 1 ;; esac',
      },
      files: { "etc/modules-load.d/.keep": "" },
      reads: ["etc/modules-load.d/cluster-e2e.conf"],
    });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(calls).toEqual([
      "modprobe ip_vs",
      "modprobe dm-crypt",
      "apt-get -q update",
      `${install} etcd-server`,
    ]);
    expect(files).toEqual({ "etc/modules-load.d/cluster-e2e.conf": "ip_vs\ndm-crypt\n" });
  });

  test("gets the packages of the other package manager there", async () => {
    const programs = { modprobe: "", rpm: "exit 1" };
    const request = { layout, programs, files: { "etc/modules-load.d/.keep": "" } };
    const { calls } = await prepare(familyOf("RHEL 9"), [], request);
    expect(calls).toEqual(["dnf -q -y install etcd"]);
  });

  test("that needs a synchronized clock gets a service that keeps it, also without Docker", async () => {
    const request = {
      conditions: "clock-synchronized",
      programs: { timedatectl: "echo 'System clock synchronized: yes'" },
    };
    const { status, calls } = await prepare(familyOf("Debian 12"), [], request);
    expect({ status, calls }).toEqual({
      status: 0,
      calls: ["apt-get -q update", `${install} chrony`],
    });
  });

  test("in a container, the computer below must have loaded the modules", async () => {
    const request = {
      layout,
      isContainer: true,
      files: { "sys/module/ip_vs/x": "" },
      programs: { uname: "echo 6.1" },
    };
    const lacking = await prepare(nothing, [], request);
    expect(lacking.status).toBe(1);
    expect(lacking.stderr).toContain(
      "the platform needs the kernel module dm-crypt, which the computer that runs this",
    );
    const files = {
      ...request.files,
      "lib/modules/6.1/modules.builtin": "kernel/drivers/md/dm-crypt.ko\n",
    };
    const programs = {
      ...request.programs,
      "dpkg-query": 'echo "install ok installed"',
      "apt-get": "exit 1",
    };
    expect(await prepare(nothing, [], { ...request, files, programs })).toMatchObject({
      status: 0,
      calls: [],
    });
  });
});
