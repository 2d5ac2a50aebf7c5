/** What becomes of a snapshot "installed" of a cluster of virtual machines: other clusters. */
import { expect } from "bun:test";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TestVms } from "./test-vms.ts";

/** A cluster beside the source, which goes on, with keys of its own. */
export async function continueBesideSource(
  vms: TestVms,
  sourceId: string,
  artifact: string,
): Promise<void> {
  const onSource = (line: string) => vms.run(["run", "-c", sourceId, "--no-test-env", line]);
  const copy = vms.id("copy");
  const onCopy = (...words: readonly string[]) =>
    vms.run(["run", "-c", copy, "--no-test-env", ...words]);
  const from = ["create", "--from", `${sourceId}:installed`, "--lifetime", "2h", "-c", copy];
  const refused = await vms.run([...from, "--masters", "3", artifact]);
  expect({ status: refused.status, stderr: refused.stderr }).toEqual({
    status: 2,
    stderr: expect.stringMatching(
      /--masters: cannot be combined with --from[^]*PLATFORM: cannot be combined with/,
    ),
  });
  const planned = await vms.run([...from, "--dry-run"]);
  expect(planned.stdout).toContain(`snapshot "installed" of cluster "${sourceId}"`);
  expect(await vms.files(copy)).toEqual([]);
  const summary = join(vms.folder, "summary.md");
  const created = await vms.run([...from, "--wait", "--summary"], {
    environment: { GITHUB_STEP_SUMMARY: summary },
  });
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${copy}\n`,
  });
  expect(await Bun.file(summary).text()).toContain("### Cluster ready");
  expect(await onCopy("systemctl is-active cluster-e2e-deadline")).toMatchObject({
    stdout: "active\n",
  });
  expect((await onSource("systemctl is-active cluster-e2e-deadline")).stdout).not.toBe("active\n");
  const srun = ["srun", "-N1", "hostname"];
  expect(await vms.run(["run", "-c", copy, ...srun])).toMatchObject({ stdout: "agent-0\n" });
  expect(await vms.run(["run", "-c", sourceId, ...srun])).toMatchObject({ stdout: "agent-0\n" });
  expect((await vms.run(["list", "--quiet"])).stdout.split("\n")).toEqual(
    expect.arrayContaining([copy, sourceId]),
  );
  const [own, source] = [await vms.inspect(copy), await vms.inspect(sourceId)];
  const hostsOf = (key: string): string => key.replace(/id_ed25519$/, "known_hosts");
  const keysOf = async (key: string) => (await Bun.file(hostsOf(key)).text()).match(/AAAA\S+/g)!;
  expect(
    new Set([...(await keysOf(own.sshKey.path)), ...(await keysOf(source.sshKey.path))]).size,
  ).toBe(4);
  const config = join(vms.folder, "copy.ssh");
  const shown = (await vms.run(["inspect", "-c", copy, "--output", "ssh-config"])).stdout;
  for (const { reference } of own.nodes) {
    const logIn = async (key: string) => {
      await Bun.write(config, shown.replaceAll(own.sshKey.path, key));
      return Bun.$`ssh -F ${config} -o BatchMode=yes ${reference} true`.quiet().nothrow();
    };
    expect((await logIn(own.sshKey.path)).exitCode).toBe(0);
    const foreign = await logIn(source.sshKey.path);
    expect({ status: foreign.exitCode, stderr: foreign.stderr.toString() }).toEqual({
      status: 255,
      stderr: expect.stringContaining("Permission denied"),
    });
  }
  const [, sourceKey] = (await Bun.$`ssh-keygen -y -f ${source.sshKey.path}`.text()).split(" ");
  const asked = Date.now() / 1000;
  const left = await onCopy(`sudo grep -rlF ${sourceKey} /root /home /etc/ssh; date +%s`);
  expect(Number(left.stdout.trim())).toBeWithin(asked - 10, Date.now() / 1000 + 10);
  expect((await vms.run(["doctor"])).stdout).not.toContain("Left over");
  expect(await vms.run(["destroy", "-c", copy])).toMatchObject({
    status: 0,
    stdout: `${copy}\n`,
  });
  expect((await vms.machines(copy)).size).toBe(0);
  expect(
    (await vms.files(copy)).filter((name) => /machines|disk|cluster\.json|snapshots/.test(name)),
  ).toEqual([]);
  expect(await vms.run(["run", "-c", sourceId, ...srun])).toMatchObject({ stdout: "agent-0\n" });
}

/** A cluster of a user who has only the snapshot's file. */
export async function continueElsewhere(vms: TestVms, sourceId: string): Promise<void> {
  const file = join(vms.folder, "cluster.zst");
  const saved = await vms.run(["snapshot", "save", "installed", file, "-c", sourceId]);
  expect({ status: saved.status, stdout: saved.stdout }, saved.stderr).toEqual({
    status: 0,
    stdout: `${file}\n`,
  });
  expect(saved.stderr).toContain("holds the secrets of the cluster");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const again = await vms.run(["snapshot", "save", "installed", file, "-c", sourceId]);
  expect(again).toMatchObject({ status: 2, stderr: expect.stringContaining("pass --replace") });
  const folder = join(vms.folder, "second");
  const elsewhere = {
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CACHE_HOME: join(folder, "cache"),
  };
  const there = (...words: readonly string[]) => vms.run(words, { environment: elsewhere });
  const copy = vms.id("elsewhere");
  const created = await there("create", "--from", file, "-c", copy, "--wait");
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${copy}\n`,
  });
  const onAgent = async (cluster: string, run: typeof there) =>
    (
      await run(
        "run",
        "-c",
        cluster,
        "--no-test-env",
        "--node",
        "agent_0",
        "cat /proc/sys/kernel/random/boot_id",
      )
    ).stdout;
  expect(await onAgent(copy, there)).toBe(
    await onAgent(sourceId, async (...words) => vms.run(words)),
  );
  expect(await there("run", "-c", copy, "srun", "-N1", "hostname")).toMatchObject({
    stdout: "agent-0\n",
  });
  expect((await there("list", "--quiet")).stdout).toBe(`${copy}\n`);
  expect(await there("destroy", "-c", copy)).toMatchObject({ status: 0, stdout: `${copy}\n` });
  const left = await readdir(folder, { recursive: true });
  expect(
    left.filter((name) => /machines|disk|memory|cluster\.json|\.part$|\/draft$/.test(name)),
  ).toEqual([]);
}

/** A cluster in which the command of `once` failed. */
export async function continueFailed(vms: TestVms, sourceId: string): Promise<void> {
  const [own, again] = [vms.id("failing"), vms.id("again")];
  const file = join(vms.folder, "out", "failed.zst");
  const words = [
    "once",
    "--from",
    `${sourceId}:installed`,
    "-c",
    own,
    "--no-test-env",
    "--save-on-failure",
    file,
  ];
  const ran = await vms.run([
    ...words,
    "--",
    "nohup sh -c 'sleep 86400; :' >/dev/null 2>&1 & echo $!; exit 7",
  ]);
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({
    status: 7,
    stdout: expect.stringMatching(/^\d+\n$/),
  });
  expect(ran.stderr).toContain("Bring the cluster back as it was: cluster-vm create --from");
  expect((await vms.machines(own)).size).toBe(0);
  expect(
    (await vms.files(own)).filter((name) => /machines|disk|cluster\.json|snapshots/.test(name)),
  ).toEqual([]);
  const created = await vms.run(["create", "--from", file, "-c", again]);
  expect(created.status, created.stderr).toBe(0);
  const command = await vms.run([
    "run",
    "-c",
    again,
    "--no-test-env",
    `cat /proc/${ran.stdout.trim()}/cmdline`,
  ]);
  expect(command.stdout, command.stderr).toContain("sleep 86400");
  expect((await vms.run(["destroy", "-c", again])).status).toBe(0);
}
