import { join } from "node:path";
import { repository } from "./executable.ts";

/** Returns the name of an image like the one that Debian publishes for this release. Makes it if it isn't in this machine's Docker. */
export async function publishedDebian(release: string): Promise<string> {
  const script = join(repository, "test/machine-image/published-debian");
  const made = await Bun.$`${script} ${release}`.quiet().nothrow();
  if (made.exitCode !== 0)
    throw new Error(`no image of Debian ${release} could be made (${made.exitCode}):\n${made.stderr.toString()}`);
  return made.text().trim();
}
