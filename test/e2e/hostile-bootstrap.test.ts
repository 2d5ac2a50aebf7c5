/**
 * The files from which nodes install contain the license, keys and password hashes. An unprivileged user on a node, and
 * another host, try to read them during the installation and afterwards. One agent is slow; it and the first master
 * reboot meanwhile.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { buildDcosArtifact, dcosMachineWords } from "./support/dcos.ts";
import {
  holdInstallation,
  insideMachines,
  patient,
  reboot,
  releaseInstallation,
} from "./support/inside-machines.ts";
import type { Inside } from "./support/inside-machines.ts";
import { until } from "../support/until.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const license = "license-0123456789-not-to-be-seen";
const folder = "/var/lib/cluster-e2e";
const port = 18_080;

interface Layout {
  readonly name: string;
  /** Files that were served, by their paths below the URL. */
  readonly served: readonly string[];
  /** Files with secrets that an installed node keeps. */
  readonly kept: readonly string[];
  readonly artifact: () => Promise<string>;
  readonly machineArguments: () => Promise<readonly string[]>;
}

const shared: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => shared.cloud!;

const layouts: readonly Layout[] = [
  {
    name: "cluster",
    served: ["master.tar", "node.tar", "cluster_install.sh"],
    kept: ["/opt/cluster/etc/login.json", "/opt/cluster/etc/license", "/etc/munge/munge.key"],
    artifact: async () => buildArtifact("enterprise", cloud().folder),
    machineArguments: async () => ["--linux-distribution", "debian-12"],
  },
  {
    name: "dcos",
    served: ["dcos_install.sh"],
    kept: ["/opt/mesosphere/etc/settings.json", "/opt/mesosphere/etc/ca.key"],
    artifact: async () => buildDcosArtifact("enterprise", "2.1.2", cloud().folder),
    machineArguments: async () => {
      // A cloud's machines keep the time; these have the clock of this machine, which perhaps nobody synchronizes.
      const extra = join(cloud().folder, "clock.yaml");
      await Bun.write(extra, "check_time: false\n");
      return [...(await dcosMachineWords("us-west-2")), "--extra-config", extra];
    },
  },
];

beforeAll(async () => {
  shared.cloud = await startTestCloud("container");
  await Bun.write(join(cloud().folder, "license.txt"), `${license}\n`);
});

afterAll(async () => {
  await shared.cloud?.[Symbol.asyncDispose]();
});

interface Attacked {
  readonly master: Inside;
  readonly agent: Inside;
  /** The bootstrap server's address. */
  readonly address: string;
  readonly secret: string;
}

/** Notes every argument list that speaks of the bootstrap server, as nobody, until the machine stops. */
const watchArguments = `
exec >/tmp/seen-arguments 2>/dev/null </dev/null
setsid sh -c 'while sleep 0.05; do cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -a ":${port}"; done' &`;

/** Tries paths at the bootstrap server; prints what status each gets. */
const fetchAll = (address: string, paths: readonly string[]): string =>
  paths
    .map(
      (path) =>
        `/usr/bin/curl -s --path-as-is -m 10 -o /dev/null -w '%{http_code}\\n' 'http://${address}:${port}${path}'`,
    )
    .join("; ");

/** The first line of standard input is looked for in all that this user can read; prints where it is. */
const searchEverything = `
read -r secret
printf '%s\\n' "$secret" | timeout 60 grep -rslFf - /etc /opt /run /tmp /var /dev/shm /home /root
for file in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do
  printf '%s\\n' "$secret" | grep -slFf - "$file"
done
{ systemctl show '*'; systemctl cat '*.service'; journalctl; } 2>/dev/null >/tmp/units
printf '%s\\n' "$secret" | grep -cFf - /tmp/units
rm /tmp/units`;

const isServed = async ({ master, address }: Attacked): Promise<boolean> =>
  (await master.shell(`/usr/bin/curl -s -m 5 -o /dev/null http://${address}:${port}/`)).status ===
  0;

async function expectNothingToRead(
  { master, agent, secret, address }: Attacked,
  served: readonly string[],
) {
  const paths = [
    "/",
    "/installed",
    ...served.flatMap((name) => [`/${name}`, `//${name}`, `/x/../${name}`]),
  ];
  for (const machine of [master, agent]) {
    const fetched = await machine.shell(fetchAll(address, paths), { user: "nobody" });
    expect(fetched.output.trim().split("\n")).toEqual(paths.map(() => "404"));
    expect(secret).toMatch(/^[\da-f]{32}$/);
    const found = await machine.shell(searchEverything, { user: "nobody", stdin: `${secret}\n` });
    expect(found.output).toBe("0\n");
    expect(
      (await machine.shell(searchEverything, { user: "nobody", stdin: `${license}\n` })).output,
    ).toBe("0\n");
    expect((await machine.shell("cat /tmp/seen-arguments")).output).not.toContain(secret);
  }
  const known = `/${secret}/${served[0]}`;
  const escapes = [
    `/${secret}/../config.yaml`,
    `/${secret}/%2e%2e/config.yaml`,
    `/${secret}//etc/passwd`,
    `/${secret}/`,
  ];
  const asNode = await master.shell(fetchAll(address, [known, ...escapes]));
  expect(asNode.output.trim().split("\n")).toEqual(["200", ...escapes.map(() => "404")]);
  // This machine is no node of the cluster: it gets nothing, though it knows the path.
  const elsewhere = await Bun.$`curl -s -S -m 10 --noproxy * ${`http://${address}:${port}${known}`}`
    .nothrow()
    .quiet();
  expect(elsewhere.exitCode).not.toBe(0);
  expect(elsewhere.stdout.toString()).toBe("");
}

describe.each(layouts.map((layout) => [layout.name, layout] as const))(
  "the layout %s",
  (name, layout) => {
    const state: { attacked?: Attacked } = {};
    const attacked = (): Attacked => state.attacked!;

    // Shows R136.
    test("create returns while an agent is slow, and nobody can read what is served", async () => {
      const words =
        `create -c ${name} --variant enterprise --agents 1 --public-agents 0 -vvv`.split(" ");
      const given = [
        "--license-key",
        join(cloud().folder, "license.txt"),
        ...(await layout.machineArguments()),
      ];
      const creation = cloud().start([...words, ...given, await layout.artifact()]);
      const machines = await insideMachines(cloud(), name, 2);
      for (const machine of machines) await machine.shell(watchArguments, { user: "nobody" });
      const [master, agent] = ["master", "agent"].map((role) =>
        machines.find((machine) => machine.role === role)!,
      );
      await holdInstallation(agent!);
      const created = await creation.ended;
      expect(created.status, created.stderr).toBe(0);
      const config = (await master!.shell(`cat ${folder}/installer/genconf/config.yaml`)).output;
      const [, address = "", secret = ""] =
        /bootstrap_url: "http:\/\/([\d.]+):18080\/?(.*)"/.exec(config) ?? [];
      state.attacked = { master: master!, agent: agent!, address, secret };
      await expectNothingToRead(attacked(), layout.served);
      expect(created.stderr).not.toContain(secret);
    });

    test("the server has no rights, and its argument list no secret", async () => {
      const { output } = await attacked().master.shell(`
      pid=$(systemctl show -p MainPID cluster-e2e-bootstrap | cut -d = -f 2)
      grep -E '^(Uid|CapEff|NoNewPrivs):' /proc/$pid/status; tr '\\0' ' ' </proc/$pid/cmdline`);
      expect(output).toMatch(/^Uid:(\t60999){4}\nCapEff:\t0+\nNoNewPrivs:\t1\n/);
      expect(output).toContain("bootstrap.json");
      expect(output).not.toContain(attacked().secret);
    });

    test("the server survives a reboot of its node while an agent has not installed yet", async () => {
      const { master } = attacked();
      const isDone = async (): Promise<boolean> =>
        (await master.shell(`cat ${folder}/bootstrap.state`)).output === `${attacked().address}\n`;
      await until("the master is installed", isDone, { ...patient, limitMs: 240_000 });
      await reboot(master);
      await until("the server answers again", async () => isServed(attacked()), patient);
      expect(await isDone()).toBe(true);
    });

    // Shows R136.
    test("an agent that reboots during its installation begins again and ends well; then the server is gone", async () => {
      const { master, agent } = attacked();
      expect((await agent.shell(`cat ${folder}/install.status`)).output).toBe("running\n");
      await reboot(agent);
      await until(
        "the unit is back",
        async () => (await agent.shell("systemctl is-active cluster-e2e-install")).status === 0,
        patient,
      );
      expect(await isServed(attacked())).toBe(true);
      await releaseInstallation(agent);
      const waited = await cloud().run(["wait", "-c", name, "--timeout", "5m"]);
      expect(waited.status, waited.stderr).toBe(0);
      await until("the server has ended", async () => !(await isServed(attacked())), patient);
      const unit = await master.shell(
        "systemctl is-active cluster-e2e-bootstrap; systemctl is-enabled cluster-e2e-bootstrap",
      );
      expect(unit.output).toMatch(/^inactive\n/);
      expect(unit.output).not.toContain("\nenabled\n");
    });

    // Shows R136.
    test("what was served is deleted, and nothing comes back at boot", async () => {
      const { master, secret } = attacked();
      await reboot(master);
      expect(await isServed(attacked())).toBe(false);
      const left = await master.shell(
        `ls -A ${folder} ${folder}/installer/genconf; ls /etc/systemd/system; ss -Hltn`,
      );
      expect(left.output).not.toMatch(/bootstrap|serve\b/);
      expect(left.output).not.toContain(String(port));
      expect(
        (await master.shell(`stat -c %a%u ${folder} ${folder}/installer/genconf/config.yaml`))
          .output,
      ).toBe("7000\n6000\n");
      for (const machine of [master, attacked().agent])
        for (const text of [secret, license])
          expect(
            (await machine.shell(searchEverything, { user: "nobody", stdin: `${text}\n` })).output,
          ).toBe("0\n");
      expect((await master.shell(`ls ${layout.kept.join(" ")}`)).status).toBe(0);
      expect(
        (await master.shell(`cat ${layout.kept.join(" ")} 2>/dev/null`, { user: "nobody" })).output,
      ).toBe("");
      expect(await cloud().run(["wait", "-c", name, "--timeout", "5m"])).toMatchObject({
        status: 0,
      });
    });
  },
);
