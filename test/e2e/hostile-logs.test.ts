/**
 * Any user of a node can write to its journal. That must not create files of their choice on the machine that collects
 * the logs.
 */
import { expect, test } from "bun:test";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeTalkingArtifact } from "./support/talking-artifact.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";

/**
 * Watches the process list, as every user can, for the command that collects the logs, and writes each of its words,
 * followed by a path, to the journal while the command is still running: a separator that any of them is would be
 * obeyed.
 */
const attack = `
seen=:
while :; do
  for file in /proc/[0-9]*/cmdline; do
    case $seen in *":$file:"*) continue ;; esac
    seen=$seen$file:
    { mapfile -d '' words <"$file"; } 2>/dev/null || continue
    case "\${words[*]}" in *e2e-logs*) ;; *) continue ;; esac
    for word in "\${words[@]}"; do
      printf '%s\\n' "$word /../../escaped" "$word ../../escaped" "$word escaped.txt" "escaped.txt aGVsbG8=" "units.txt aGVsbG8="
    done | logger -t "$word" -p user.notice
    for word in "\${words[@]}"; do printf '%s /../../escaped\\nowned\\n' "$word"; done | systemd-cat
  done
done
`;

// Shows R132.
test("a process of nobody's cannot have a file written, or another log replaced", async () => {
  await using containers = await startTestContainers();
  const id = containers.id("hostile-logs");
  const license = join(containers.folder, "license.txt");
  await Bun.write(license, "a-license\n");
  const artifact = await writeTalkingArtifact(containers.folder, "exit 0\n");
  const words = [
    "--variant",
    "enterprise",
    "--license-key",
    license,
    "--agents",
    "0",
    "--public-agents",
    "0",
  ];
  const created = await containers.run([
    "create",
    ...words,
    "--node-image",
    nodeImage,
    "-c",
    id,
    artifact,
  ]);
  expect(created.status, created.stderr).toBe(0);
  const { nodes } = await containers.inspect(id);
  const node = nodes[0]!.id;
  await containers.engine.run(["exec", "--detach", "--user", "65534", node, "bash", "-c", attack]);
  const outside = join(containers.folder, "here");
  const folder = join(outside, "logs", "of-the-cluster");
  await mkdir(folder, { recursive: true });
  for (let round = 0; round < 2; round += 1) {
    const logs = await containers.run(["logs", "-c", id, "--output-dir", folder]);
    expect(logs, logs.stderr).toMatchObject({ status: 0, stdout: `${folder}\n` });
  }
  const journal = await readFile(join(folder, "master_0.journal.txt"), "utf8");
  expect(journal, "the attack took place").toContain("e2e-logs /../../escaped");
  expect(await readFile(join(folder, "master_0.units.txt"), "utf8")).not.toBe("hello");
  expect(await readdir(outside)).toEqual(["logs"]);
  expect(await readdir(join(outside, "logs"))).toEqual(["of-the-cluster"]);
  for (const name of await readdir(folder)) expect(name).toMatch(/^master_0\.[a-z-]+\.(log|txt)$/);
  const state = await readdir(join(containers.stateFolder), { recursive: true });
  expect(state.filter((name) => name.includes("escaped"))).toEqual([]);
});
