/**
 * Clusters in rootless engines: those of Debian 12 and 13 for an ordinary user, under cgroups 2. Files move between Podman and Docker.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import {
  bareOptions,
  expectArrival,
  expectLife,
  type LifePlace,
  succeed,
} from "./support/cluster-life.ts";
import {
  type RootlessComputer,
  rootlessLack,
  startRootlessComputer,
} from "./support/rootless-computer.ts";

/** Whether limits can be in force here: a controller in cgroups 1 is missing in cgroups 2. */
const hasControllers = existsSync("/sys/fs/cgroup/cgroup.controllers");

const releases = [
  { release: "12", podman: /^4\./, docker: /^20\.10/ },
  { release: "13", podman: /^[5-9]\./, docker: /^2[6-9]\./ },
] as const;

for (const { release, podman, docker } of releases)
  describe.skipIf(rootlessLack !== undefined)(
    `rootless engines of Debian ${release} (${rootlessLack ?? "here"})`,
    () => {
      const state: { computer?: RootlessComputer } = {};
      const computer = (): RootlessComputer => state.computer!;
      const engine = (line: string): Promise<string> => computer().shell("e2e", line);

      beforeAll(async () => {
        state.computer = await startRootlessComputer(release);
      }, 900_000);
      afterAll(async () => {
        await state.computer?.[Symbol.asyncDispose]();
      });

      test("they are rootless, and of that release", async () => {
        const facts = "{{.Version.Version}} {{.Host.Security.Rootless}}";
        expect(await engine(`podman info --format '${facts}'`)).toMatch(podman);
        expect(await engine(`podman info --format '${facts}'`)).toEndWith(" true");
        const info = await engine("docker info --format '{{.ServerVersion}} {{.SecurityOptions}}'");
        expect(info).toMatch(docker);
        expect(info).toContain("name=rootless");
      });

      // Shows R110.
      test("in Podman, a cluster lives, and leaves nothing but its file", async () => {
        await expectRootlessLife(computer().place("podman"), "podman");
      });

      test("in Docker, a cluster lives, and files move both ways", async () => {
        const place = computer().place("docker");
        await expectRootlessLife(place, "docker");
        await expectArrival(place, `${place.path}/podman.zst`, ["podman", "moved"]);
        const other = computer().place("podman");
        await expectArrival(other, `${place.path}/docker.zst`, ["docker", "moved"]);
      });

      test.skipIf(hasControllers)(
        `a limit whose controller isn't delegated is refused with the way to delegate it (${hasControllers ? "skipped: systemd delegates it under cgroups 2" : "here"})`,
        async () => {
          for (const name of ["podman", "docker"] as const) {
            const place = computer().place(name);
            expect((await place.run(["doctor"])).stdout).toContain("--memory cannot be limited");
            const refusal = await refusalOf(place, bareOptions);
            expect(refusal).toContain("no control groups for the limit --memory");
            expect(refusal).toContain("Delegate=");
          }
        },
      );

      test.skipIf(!hasControllers)(
        `a limit whose controller is delegated is in force (${hasControllers ? "here" : "skipped: this computer has its controllers in cgroups 1"})`,
        async () => {
          for (const name of ["podman", "docker"] as const) {
            const place = computer().place(name);
            await succeed(place, `create -c limited --agents 0 --public-agents 0 ${bareOptions}`);
            const limit = await succeed(place, "run -c limited cat /sys/fs/cgroup/memory.max");
            expect(limit).toBe(`${400 * 1024 ** 2}\n`);
            await succeed(place, "destroy -c limited --yes");
          }
        },
      );

      test("too few users for a node are refused before anything is made", async () => {
        const ids = "/etc/subuid /etc/subgid";
        await computer().shell("root", `sed -i 's/^e2e:.*/e2e:100000:1000/' ${ids}`);
        await engine("podman system migrate; systemctl --user restart docker");
        for (const name of ["podman", "docker"] as const) {
          const place = computer().place(name);
          const refusal = await refusalOf(place, place.options ?? "");
          expect(refusal).toContain("1001 users and groups for containers");
        }
      });
    },
  );

async function expectRootlessLife(place: LifePlace, id: string): Promise<void> {
  const onAgent = (line: string): Promise<string> =>
    succeed(place, `run -c ${id} --node agent_0 ${line}`);
  await expectLife(place, id, async () => {
    expect(await succeed(place, `inspect -c ${id}`)).toMatch(/through (?:Docker|Podman)/);
    await onAgent("test ! -f /dev/loop-control");
    await succeed(place, `fault partition --between agent_0 --and master_0 --for 10m -c ${id}`);
    const cut = await place.run(`run -c ${id} --node agent_0 ping -c 1 -W 5 master-0`.split(" "));
    expect(cut.status, cut.stderr).toBe(1);
    await succeed(place, `fault heal -c ${id}`);
    await onAgent("ping -c 1 -W 30 master-0");
    const slow = await place.run(
      `fault network agent_0 --delay 200ms --for 5s --wait -c ${id}`.split(" "),
    );
    if (slow.status !== 0)
      expect(slow).toMatchObject({ status: 5, stderr: expect.stringContaining("sch_netem") });
    await succeed(place, `snapshot create before -c ${id}`);
    await onAgent("rm /root/sent");
    await succeed(place, `snapshot restore before -c ${id}`);
    await succeed(place, `wait -c ${id}`);
    expect(await onAgent("cat /root/sent")).toBe(id);
  });
}

/** What is said where nothing is made. */
async function refusalOf(place: LifePlace, options: string): Promise<string> {
  const before = await place.things();
  const ended = await place.run(`create ${options}`.split(" "));
  expect(ended, ended.stderr).toMatchObject({ status: 5, stdout: "" });
  expect(await place.things()).toEqual(before);
  return ended.stderr;
}
