/** What snapshots promise on every backend that has them, and the clusters that are made of them. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { commandsOf, type LocalSubject } from "./conformance.ts";
import type { Ended } from "./executable.ts";
import type { Inspected } from "./test-backend.ts";

/** What a backend's snapshots keep beyond the files of the nodes. */
export interface Witness {
  /** Resolves with what `check` needs. */
  readonly plant: () => Promise<string>;
  /** What the first agent then runs to lose it. */
  readonly spoil?: string;
  readonly check: (planted: string, restored: Ended) => Promise<void>;
}

/** Leaves the snapshot "installed", in which /root/note of the first agent says "saved". */
export async function saveInstalled(subject: LocalSubject): Promise<void> {
  const { ask, on } = commandsOf(subject);
  await on("agent_0", "echo saved >/root/note");
  // Slurm saves its jobs only every few seconds: in an older copy of its state, the job that has just run would run forever.
  await on("master_0", "systemctl restart slurmctld");
  const saved = await ask(["snapshot", "create", "installed"]);
  expect(saved, saved.stderr).toMatchObject({ status: 0, stdout: "installed\n" });
}

export function testSnapshots(subject: LocalSubject, { plant, spoil = "", check }: Witness): void {
  const { backend, id, kill } = subject;
  const { ask, expectJob, nodeOf, on } = commandsOf(subject);

  // Shows R119.
  test("a snapshot brings all nodes back at their addresses as they were saved, one that was killed too, and a job runs", async () => {
    const before = await backend().inspect(id());
    const planted = await plant();
    await saveInstalled(subject);
    expect((await ask(["snapshot", "list"])).stdout).toMatch(
      /^NAME +CREATED +SIZE +STATE\ninstalled +(\S+ )?\d\d:\d\d UTC +[1-9]\d+ MB +complete\n$/,
    );
    await on("agent_0", `rm /root/note; touch /root/later; ${spoil}`);
    await kill(await nodeOf("agent_0"));
    const restored = await ask(["snapshot", "restore", "installed", "-vv"]);
    expect(restored, restored.stderr).toMatchObject({ status: 0, stdout: "installed\n" });
    await check(planted, restored);
    expect(addressesOf(await backend().inspect(id()))).toEqual(addressesOf(before));
    expect(await on("agent_0", "cat /root/note; ls /root/later 2>/dev/null")).toBe("saved");
    expect(await ask(["wait", "--timeout", "14m"])).toMatchObject({ status: 0 });
    await expectJob();
  });
}

/** Makes a copy of the snapshot "installed", which stays for further tests. */
export function testCopy(subject: LocalSubject): LocalSubject {
  const { backend, id, things } = subject;
  const copy = { ...subject, id: () => `${id()}-copy` };
  const [source, own] = [commandsOf(subject), commandsOf(copy)];

  // Shows R120.
  test("a copy runs beside its source, which goes on, with the same data and a lifetime of its own", async () => {
    const words = ["--from", `${id()}:installed`, "--lifetime", "2h"];
    const planned = await own.ask(["create", ...words, "--dry-run"]);
    expect(planned.stdout).toContain(`snapshot "installed" of cluster "${id()}"`);
    expect(await things(copy.id())).toEqual([]);
    await source.on("agent_0", "echo later >/root/note");
    const summary = join(backend().folder, "summary.md");
    const made = await own.ask(["create", ...words, "--wait", "--timeout", "14m", "--summary"], {
      environment: { GITHUB_STEP_SUMMARY: summary },
    });
    expect(made, made.stderr).toMatchObject({ status: 0, stdout: `${copy.id()}\n` });
    expect(await Bun.file(summary).text()).toContain("### Cluster ready");
    const look = "cat /root/note; systemctl is-active cluster-e2e-deadline";
    expect(await own.on("agent_0", look)).toBe("saved\nactive");
    expect(await source.on("agent_0", look)).toBe("later\ninactive");
    for (const { expectJob } of [own, source]) await expectJob();
    const clusters = await Promise.all([copy, subject].map((each) => backend().inspect(each.id())));
    expect(addressesOf(clusters[0]!)).toEqual(addressesOf(clusters[1]!));
  });

  // Shows R120.
  test("neither the copy nor its source accepts the other's key, and no host key is in both", async () => {
    const clusters = await Promise.all([copy, subject].map((each) => backend().inspect(each.id())));
    const paths = clusters.map(({ sshKey }) => sshKey.path);
    const hostKeys = await Promise.all(
      paths.map(async (path) => {
        const text = await Bun.file(path.replace(/id_ed25519$/, "known_hosts")).text();
        return new Set(text.match(/AAAA\S+/g));
      }),
    );
    expect(new Set(hostKeys.flatMap((keys) => [...keys])).size).toBe(2 * own.nodeNames.length);
    const texts = await Promise.all([own, source].map(async ({ sshConfig }) => sshConfig()));
    const config = join(backend().folder, "foreign.ssh");
    const logIn = async (index: number, path: string, node: string) => {
      const text = await Bun.file(texts[index]!).text();
      await Bun.write(config, text.replaceAll(paths[index]!, path));
      return Bun.$`ssh -F ${config} -o BatchMode=yes ${node} true`.quiet().nothrow();
    };
    for (const index of [0, 1])
      for (const node of own.nodeNames) {
        expect((await logIn(index, paths[index]!, node)).exitCode).toBe(0);
        const foreign = await logIn(index, paths[1 - index]!, node);
        expect({ status: foreign.exitCode, stderr: foreign.stderr.toString() }).toEqual({
          status: 255,
          stderr: expect.stringContaining("Permission denied"),
        });
      }
  });
  return copy;
}

const addressesOf = ({ nodes }: Inspected) =>
  nodes.map(({ reference, privateAddress }) => [reference, privateAddress]);
