/** The stand-in for releases of the layout dcos, and machines that meet its requirements. */
import { join } from "node:path";
import table from "../../dcos-platform/releases.json" with { type: "json" };
import { imagesOf } from "../../local-cloud/catalogue/images.ts";
import { repository } from "./executable.ts";

export type DcosRelease = keyof typeof table.releases;

/** Those that have a stand-in, oldest first. */
export const dcosReleases = Object.keys(table.releases) as readonly DcosRelease[];

/** The image of machines with all that the layout needs, in this machine's Docker. Makes it where it isn't there. */
export async function dcosNodeImage(): Promise<string> {
  await finished("machine-image", []);
  return "localhost/cluster-e2e-machine:debian-12-docker";
}

export function buildDcosArtifact(
  variant: "oss" | "enterprise",
  release: DcosRelease,
  folder: string,
): Promise<string> {
  const output = join(folder, `dcos_generate_config.${variant}.${release}.sh`);
  const build = async (): Promise<string> => {
    await finished("build", ["--variant", variant, "--release", release, "--output", output]);
    return output;
  };
  // Tests run at the same time, and none may replace a file that another one's program has listed.
  const building = builds.get(output) ?? build();
  builds.set(output, building);
  return building;
}

const builds = new Map<string, Promise<string>>();

/** Options that launch machines with Docker, unzip and ipset. Makes their image first where it isn't there. */
export async function dcosMachineWords(region: string): Promise<readonly string[]> {
  await finished("machine-image", []);
  const image = imagesOf(region).find(
    ({ distribution, owner }) => distribution === "debian-12-docker" && owner === "111122223333",
  );
  if (image === undefined) throw new Error("the local cloud has no image with Docker");
  return ["--linux-distribution", "debian-12", "--image", image.id, "--ssh-user", image.user];
}

async function finished(program: string, words: readonly string[]): Promise<void> {
  const child = Bun.spawn([join(repository, "test/dcos-platform", program), ...words], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [status, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (status !== 0) throw new Error(`test/dcos-platform/${program} failed (${status}):\n${stderr}`);
}
