/**
 * The sample platform as release artifacts, one for each variant. They are built once; the builder caches its packages.
 */
import { join } from "node:path";
import { repository } from "./executable.ts";

export async function buildArtifact(
  variant: "oss" | "enterprise",
  folder: string,
): Promise<string> {
  const output = join(folder, `generate_config.${variant}.sh`);
  const child = Bun.spawn(
    [join(repository, "test/sample-platform/build"), "--variant", variant, "--output", output],
    {
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [status, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (status !== 0) throw new Error(`building the sample platform failed (${status}):\n${stderr}`);
  return output;
}
