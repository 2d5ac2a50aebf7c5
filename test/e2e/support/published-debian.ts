import { join } from "node:path";
import { docker } from "./test-containers.ts";
import { repository } from "./executable.ts";

/** Returns the name of an image like the one that Debian publishes for this release. Makes it if it isn't in this machine's Docker. */
async function publishedDebian(release: string): Promise<string> {
  const script = join(repository, "test/machine-image/published-debian");
  const made = await Bun.$`${script} ${release}`.quiet().nothrow();
  if (made.exitCode !== 0)
    throw new Error(
      `no image of Debian ${release} could be made (${made.exitCode}):\n${made.stderr.toString()}`,
    );
  return made.text().trim();
}

/** The name that recipes of node images use. */
export const debianBase = (release: string): string => `docker.io/library/debian:${release}`;

/**
 * Gives that name to the image like Debian's, unless an image has it. Call this before each build: another file that runs
 * concurrently may have removed the name when it ended.
 */
export async function nameDebianBase(release: string): Promise<void> {
  if ((await docker(["images", "--quiet", debianBase(release)])) !== "") return;
  await docker(["tag", await publishedDebian(release), debianBase(release)]);
}
