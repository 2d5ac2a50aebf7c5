/**
 * Clusters in rootless engines: those of Debian 12 and 13 for an ordinary user, under cgroups 2, each release in a virtual machine of this test. Files move from
 * Podman to Docker and back.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  bareOptions,
  expectArrival,
  expectLife,
  type LifePlace,
  succeed,
} from "./support/cluster-life.ts";
import { type RootlessComputer, startRootlessComputer } from "./support/rootless-computer.ts";

const bootMs = 1_700_000;
const lifeMs = 2_400_000;

const releases = [
  { name: "Debian 12", image: "--rootless", podman: /^4\./, docker: /^20\.10/ },
  { name: "Debian 13", image: "--rootless-13", podman: /^[5-9]\./, docker: /^2[6-9]\./ },
] as const;

describe.each(releases)("rootless engines of $name", ({ image, podman, docker }) => {
  const state: { computer?: RootlessComputer } = {};
  const computer = (): RootlessComputer => state.computer!;
  const engine = (line: string): Promise<string> => computer().shell("e2e", line);

  beforeAll(async () => {
    state.computer = await startRootlessComputer(image);
  }, bootMs);
  afterAll(async () => {
    await state.computer?.[Symbol.asyncDispose]();
  });

  test(
    "they are rootless, and of that release",
    async () => {
      expect(
        await engine("podman info --format '{{.Version.Version}} {{.Host.Security.Rootless}}'"),
      ).toMatch(new RegExp(`${podman.source}.* true$`));
      expect(
        await engine("docker info --format '{{.ServerVersion}} {{.SecurityOptions}}'"),
      ).toMatch(new RegExp(`${docker.source}.*name=rootless`));
    },
    lifeMs,
  );

  test(
    "in Podman, a cluster lives, and leaves nothing but its file",
    async () => {
      await expectRootlessLife(computer().place("podman"), "podman");
    },
    lifeMs,
  );

  test(
    "in Docker, a cluster lives, and so does one from Podman's file",
    async () => {
      const place = computer().place("docker");
      await expectRootlessLife(place, "docker");
      await expectArrival(place, `${place.path}/podman.zst`, ["podman", "moved"]);
      await expectArrival(computer().place("podman"), `${place.path}/docker.zst`, [
        "docker",
        "moved",
      ]);
    },
    lifeMs,
  );

  test(
    "a limit whose controller isn't delegated is refused with the way to delegate it",
    async () => {
      await delegate(computer(), "pids");
      for (const name of ["podman", "docker"] as const) {
        const place = computer().place(name);
        expect((await place.run(["doctor"])).stdout).toMatch(
          /cgroups .*--memory cannot be limited/,
        );
        await expectRefusal(place, "no control groups for the limit --memory");
      }
      await delegate(computer(), "cpu cpuset io memory pids");
      for (const name of ["podman", "docker"] as const) {
        const plan = await succeed(
          computer().place(name),
          `create --dry-run --cpus 0.5 ${bareOptions}`,
        );
        expect(plan).toContain("CPUs: 0.5");
      }
    },
    lifeMs,
  );

  test(
    "too few users for a node are refused before anything is made",
    async () => {
      const give = (count: number): Promise<string> =>
        computer().shell("root", `sed -i 's/^e2e:.*/e2e:100000:${count}/' /etc/subuid /etc/subgid`);
      await give(1000);
      await engine("podman system migrate; systemctl --user restart docker");
      for (const name of ["podman", "docker"] as const)
        await expectRefusal(computer().place(name), "1001 users and groups for containers");
      await give(65_536);
    },
    lifeMs,
  );
});

async function expectRootlessLife(place: LifePlace, id: string): Promise<void> {
  const onAgent = (line: string): Promise<string> =>
    succeed(place, `run -c ${id} --node agent_0 ${line}`);
  await expectLife(place, id, async () => {
    expect(await succeed(place, `inspect -c ${id}`)).toMatch(/through (?:Docker|Podman)/);
    expect(await onAgent("cat /sys/fs/cgroup/memory.max")).toBe(`${400 * 1024 ** 2}\n`);
    await succeed(place, `fault partition --between agent_0 --and master_0 --for 10m -c ${id}`);
    const cut = await place.run(`run -c ${id} --node agent_0 ping -c 1 -W 5 master-0`.split(" "));
    expect(cut.status).toBe(1);
    await succeed(place, `fault heal -c ${id}`);
    await onAgent("ping -c 1 -W 30 master-0");
    await succeed(place, `snapshot create before -c ${id}`);
    await onAgent("rm /root/sent");
    await succeed(place, `snapshot restore before -c ${id}`);
    await succeed(place, `wait -c ${id}`);
    expect(await onAgent("cat /root/sent")).toBe(id);
  });
}

/** Nothing is made, and the reason is printed. */
async function expectRefusal(place: LifePlace, reason: string): Promise<void> {
  const before = await place.things();
  const ended = await place.run(`create ${bareOptions}`.split(" "));
  expect(ended.stderr).toContain(reason);
  expect(ended).toMatchObject({ status: 5, stdout: "" });
  expect(await place.things()).toEqual(before);
}

/** What systemd delegates to its user from now on. All that they run is started again. */
async function delegate({ shell }: RootlessComputer, controllers: string): Promise<void> {
  const folder = "/etc/systemd/system/user@.service.d";
  await shell(
    "root",
    `mkdir -p ${folder}; printf '[Service]\\nDelegate=${controllers}\\n' >${folder}/delegate.conf
systemctl daemon-reload; systemctl restart user@1000.service`,
  );
}
