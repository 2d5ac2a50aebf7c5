/**
 * Rules of the specification that no other test shows: commands, options and defaults, and rules that need no machine.
 */
import { expect, test } from "bun:test";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../support/until.ts";
import { answering, createWords, describeOnBench } from "./support/error-cases.ts";
import { run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

const help = async (words: readonly string[]): Promise<string> => {
  const { stdout } = await run("cluster-cloud", [...words, "--help"], { environment: {} });
  return stdout.replaceAll(/\s+/g, " ");
};

// Shows R15, R42.
test("--version prints the version and exits", async () => {
  const ran = await run("cluster-cloud", ["--version"], { environment: {} });
  expect(ran).toMatchObject({ status: 0, stderr: "" });
  expect(ran.stdout).toMatch(/^(?:\d{4}\.\d{1,2}\.\d{1,2}\.\d+|0\.0\.0\+[0-9a-z]+)\n$/);
});

// Shows R42.
test("the program has the specification's commands", async () => {
  const text = await help([]);
  expect(text).toStartWith("Usage: cluster-cloud [OPTIONS] COMMAND [ARGS]...");
  for (const name of ["create", "doctor", "inspect", "list", "run", "sync", "wait", "web"]) {
    expect(text).toContain(` ${name} `);
  }
});

// Shows R38.
test("there is no command that destroys a cluster", async () => {
  const ran = await run("cluster-cloud", ["destroy"], { environment: {} });
  expect(ran).toMatchObject({ status: 2, stdout: "" });
  expect(ran.stderr).toContain(
    '"destroy": no such command; cloud clusters terminate automatically two hours after',
  );
  const stop = await run("cluster-cloud", ["stop"], { environment: {} });
  expect(stop.stderr.replaceAll(/\s+/g, " ")).toContain(
    "to restart nodes, use cluster-cloud node restart NODE ",
  );
});

const place = { "--cloud-region <cloud_region>": "us-west-2" };
const one = { "-c, --cluster-id <cluster_id>": "default", ...place, "-v, --verbose": undefined };

/** Options by command, each with its default, where it has one. */
const options: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
  create: {
    "--variant <variant>": undefined,
    "--masters <masters>": "1",
    "--agents <agents>": "1",
    "--public-agents <public_agents>": "1",
    "--linux-distribution <linux_distribution>": "centos-7",
    "--custom-tag <TAG_KEY>:<TAG_VALUE>": undefined,
    "--extra-config <extra_config>": undefined,
    "--workspace-dir <workspace_dir>": "the system's temporary folder",
    "--license-key <license_key>": "the file that CLUSTER_LICENSE_KEY_PATH names",
    "--genconf-dir <genconf_dir>": undefined,
    "--security-mode <security_mode>": undefined,
    "--copy-to-master </absolute/local/path:/remote/path>": undefined,
    "--enable-selinux-enforcing": undefined,
    ...one,
  },
  doctor: { "-v, --verbose": undefined },
  list: place,
  inspect: one,
  run: {
    "--login-uname <login_uname>": undefined,
    "--login-pw <login_pw>": undefined,
    "--sync-dir <sync_dir>": undefined,
    "--no-test-env": undefined,
    "--env <KEY>=<VALUE>": undefined,
    "--node <node>": "the first master that answers",
    ...one,
  },
  sync: one,
  wait: {
    "--superuser-username <superuser_username>": "admin",
    "--superuser-password <superuser_password>": "admin",
    "--timeout <duration>": "60m",
    ...one,
  },
  web: one,
};

// Shows R43, R44, R74, R75.
test.each(Object.entries(options))(
  "%s has the specification's options and defaults",
  async (command, declared) => {
    const entries = (await help([command])).split(/ (?=-\w, --[a-z])|(?<!,) (?=--[a-z])/);
    for (const [flag, usual] of Object.entries(declared)) {
      const entry = entries.find((each) => each.startsWith(`${flag} `));
      expect({ flag, entry }).toEqual({ flag, entry: expect.any(String) as string });
      if (usual !== undefined) expect(entry).toContain(`(default: ${usual})`);
    }
  },
);

describeOnBench("words of the specification", (bench) => {
  // Shows R21, R23, R25, R26, R78.
  test("create without options: one master, one agent, one public agent of CentOS 7 in us-west-2, named default", async () => {
    const { cloud } = bench();
    const { stdout } = await cloud.run(
      ["create", "--dry-run", "--output", "json", "--variant", "oss", "open.sh"],
      {
        cwd: cloud.folder,
      },
    );
    expect((JSON.parse(stdout) as { readonly plan: unknown }).plan).toMatchObject({
      cluster: "default",
      region: "us-west-2",
      counts: { masters: 1, agents: 1, publicAgents: 1 },
      image: { name: expect.stringContaining("CentOS Linux 7") as string, user: "centos" },
      maximumCostDollars: 0.72,
    });
  });

  // Shows R30, R52.
  test("SELinux is enforced on every node before the installation begins there", async () => {
    const { cloud } = bench();
    // The first failure ends the work on the other nodes, which may be a little later.
    const failure = {
      pattern: "e2e-start-install",
      status: 1,
      readsStdin: true,
      delayMs: 3_000,
    } as const;
    await using _failing = await answering(failure)(bench());
    const words =
      "create --variant enterprise -c selinux --linux-distribution rocky-9 --enable-selinux-enforcing artifact.sh";
    expect(await cloud.run(words.split(" "), { cwd: cloud.folder })).toMatchObject({ status: 1 });
    const commands = (await cloud.control("commands")) as readonly {
      readonly instanceId: string;
      readonly command: string;
    }[];
    const first = (name: string): ReadonlyMap<string, number> =>
      new Map(
        [...commands.entries()]
          .filter(([, { command }]) => command.includes(name))
          .map(([index, { instanceId }]) => [instanceId, index] as const)
          .toReversed(),
      );
    const [enforced, begun] = [first("e2e-selinux"), first("e2e-start-install")];
    expect(enforced.size).toBe(3);
    const both = [...begun].filter(([instance]) => enforced.has(instance));
    expect(both).not.toEqual([]);
    for (const [instance, index] of both) expect(enforced.get(instance)).toBeLessThan(index);
  });

  // Shows R26.
  test("each distribution's image is found, with the user that it lets in", async () => {
    const { cloud } = bench();
    const names = [
      "rhel-7",
      "rhel-8",
      "rhel-9",
      "rocky-8",
      "rocky-9",
      "almalinux-8",
      "almalinux-9",
      "debian-11",
      "debian-12",
      "debian-13",
      "ubuntu-20",
      "ubuntu-22",
      "ubuntu-24",
      "amazon-2",
      "amazon-2023",
    ];
    const planned = await Promise.all(
      names.map(async (name) => {
        const words = [
          "create",
          "--dry-run",
          "--output",
          "json",
          "--variant",
          "oss",
          "--linux-distribution",
          name,
          "open.sh",
        ];
        const ran = await cloud.run(words, { cwd: cloud.folder });
        const { plan } = JSON.parse(ran.stdout) as {
          readonly plan: { readonly image: { readonly name: string; readonly user: string } };
        };
        return `${name}: ${plan.image.user}`;
      }),
    );
    expect(planned).toMatchInlineSnapshot(`
      [
        "rhel-7: ec2-user",
        "rhel-8: ec2-user",
        "rhel-9: ec2-user",
        "rocky-8: rocky",
        "rocky-9: rocky",
        "almalinux-8: ec2-user",
        "almalinux-9: ec2-user",
        "debian-11: admin",
        "debian-12: admin",
        "debian-13: admin",
        "ubuntu-20: ubuntu",
        "ubuntu-22: ubuntu",
        "ubuntu-24: ubuntu",
        "amazon-2: ec2-user",
        "amazon-2023: ec2-user",
      ]
    `);
  });

  // Shows R76.
  test("web opens the browser at the web UI, prints its URL, and says what the browser must trust", async () => {
    const { cloud, base } = bench();
    const url = `https://${base.nodes[0]!.publicAddress}/`;
    // Before the platform is there to ask, it is the configuration that tells.
    expect(
      (await cloud.run(["web", "-c", "base"], { environment: { PATH: "/nowhere" } })).stdout,
    ).toBe(`${url}\n`);
    const config = 'config={"ssl_enabled": true}\n';
    const ready = `layout=cluster\nstatus=exit 0\ncheck.status=0\n${config}`;
    await using _ready = await answering({
      pattern: "e2e-readiness",
      stdout: ready,
      readsStdin: true,
    })(bench());
    await using folder = await temporaryFolder();
    const opener = join(folder.path, "xdg-open");
    await writeFile(opener, `#!/bin/sh\necho "$1" >${folder.path}/opened\n`);
    await chmod(opener, 0o755);
    const environment = { PATH: `${folder.path}:${process.env["PATH"]}` };
    const ran = await cloud.run(["web", "-c", "base"], { environment });
    expect(ran).toMatchObject({ status: 0, stdout: `${url}\n` });
    expect(ran.stderr.replaceAll(/\s+/g, " ")).toContain(
      `must trust the cluster's certificate authority: ${url}ca/cluster-ca.crt`,
    );
    await until(
      "the browser has been started with the URL",
      async () => (await readFile(join(folder.path, "opened"), "utf8")) === `${url}\n`,
    );
    const blind = await cloud.run(["web", "-c", "base"], {
      environment: { PATH: folder.path.replace(/$/, "-none") },
    });
    expect(blind).toMatchObject({ status: 0, stdout: `${url}\n` });
    expect(blind.stderr).toContain("No browser could be started");
  });

  test("logs takes a folder that is there as it is, and keeps what it writes to this user", async () => {
    const { cloud } = bench();
    await using folder = await temporaryFolder();
    await chmod(folder.path, 0o755);
    const saved = await cloud.run(["logs", "-c", "base", "--output-dir", folder.path]);
    expect(saved).toMatchObject({ status: 0, stdout: `${folder.path}\n` });
    expect((await stat(folder.path)).mode & 0o777).toBe(0o755);
    expect((await stat(join(folder.path, "master_0.console.txt"))).mode & 0o777).toBe(0o600);
  });

  // Shows R98.
  test("two creates of one id at the same moment: one of them is refused", async () => {
    const { cloud } = bench();
    // The other one fails late, so that nothing is left of it either.
    const late = {
      pattern: "e2e-start-install",
      status: 1,
      readsStdin: true,
      delayMs: 1500,
    } as const;
    await using _failing = await answering(late)(bench());
    const twice = await Promise.all(
      [1, 2].map(() => cloud.run(createWords("twice"), { cwd: cloud.folder })),
    );
    const ids = twice.map(({ stderr }) => /\[([a-z-]+)\]\n$/.exec(stderr)?.[1] ?? "");
    expect(ids.toSorted()).toEqual(["cluster-exists", "install-failed"]);
  });
});
