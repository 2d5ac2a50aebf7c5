import { defineCommand } from "../../cli/command.ts";
import { argument, BadValue } from "../../cli/options/option.ts";
import { value } from "../../cli/options/value-types.ts";
import type { ArtifactLocation } from "../../platform/artifact/artifact-location.ts";
import { createOptions } from "./create-options.ts";
import type { Driver } from "../driver.ts";
import { checkSummary, summarizingFailure } from "../summary/step-summary.ts";

const positionals = {
  artifact: argument(value(artifactLocation, "file"), {
    name: "ARTIFACT_URL",
    summary:
      "The release artifact (an installer generator script), as a path or as an https://, http:// or file:// URL",
    required: true,
  }),
};

export const createCommand = (driver: Driver) => {
  const options = createOptions(driver);
  return defineCommand({
    name: "create",
    summary: "Create a cluster",
    description:
      "Create the machines, prepare them and start the installation of the artifact on all of them. The command returns once the installation has started; to wait until the platform is ready, run `wait` or pass `--wait`. If anything fails, or on Ctrl-C, everything that was created is removed, and the logs are kept.",
    positionals,
    options,
    examples: [
      {
        words: "create --variant oss https://example.com/generate_config.sh",
        summary: "Create one master, one agent and one public agent",
      },
      {
        words: "create --variant oss --masters 3 --agents 5 -c nightly ./generate_config.sh",
        summary: "Create a larger cluster from a local artifact",
      },
      {
        words: "create --variant enterprise --license-key license.txt --dry-run ./generate_config.ee.sh",
        summary: "Show what would be created",
      },
    ],
    check: async (given, problems, context) => {
      if (given.superuserPassword !== undefined && given.wait !== true)
        problems.add("--superuser-password: only allowed with --wait, since create does not log in otherwise");
      await checkSummary(given.summary, problems, context);
      if (given.summary && given.dryRun) problems.add("--summary: cannot be combined with --dry-run");
      if (given.from !== undefined) return;
      const { checkInstallation } = await import("./check-installation.ts");
      await checkInstallation(driver, given, problems, context);
    },
    run: async (input, context) => {
      const { runCreate } = await import("./create-run.ts");
      const { clusterId, summary: isWanted } = input;
      const title = `Cluster ${clusterId} could not be ${input.wait ? "created, or did not become ready" : "created"}`;
      await summarizingFailure(title, { isWanted, context }, async () => runCreate(driver, input, context));
    },
  });
};

async function artifactLocation(given: string, { cwd }: { readonly cwd: string }): Promise<ArtifactLocation> {
  const { parseArtifactLocation } = await import("../../platform/artifact/artifact-location.ts");
  const outcome = parseArtifactLocation(given, cwd);
  if (outcome.problems === undefined) return outcome.value;
  throw new BadValue(outcome.problems.join("; "));
}
