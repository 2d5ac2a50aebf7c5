import type { Variant } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import { outside } from "../../outside-text.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { assertVariant } from "../artifact/artifact-head.ts";
import type { ArtifactVersion } from "../artifact/artifact-version.ts";
import { parseArtifactVersion } from "../artifact/artifact-version.ts";
import type { WorkPaths } from "../install-paths.ts";
import versionFile from "./check-version.sh" with { type: "text" };
import { outsideLine, outsideLines } from "../../system/printable.ts";
import { type Phase, reasonOf } from "./phase.ts";

export interface CheckVersion {
  readonly variant: Variant;
  /** Hexadecimal. */
  readonly sha256: string | undefined;
  /** The artifact's location, safe to show. */
  readonly shown: string;
  readonly work: WorkPaths;
}

// The first run of some artifacts unpacks and loads a container image.
const limitMs = 15 * 60_000;
const wrongSum = 90;

export const versionScript = ({ folder }: WorkPaths): string =>
  shellText(versionFile, { FOLDER: folder, WRONG_SUM: wrongSum });

/** Reads the version from the artifact itself, before anything of it is installed. */
export const checkVersion = (request: CheckVersion): Phase<ArtifactVersion> => ({
  title: "Check version",
  run: async ({ connection }, signal) => {
    const stdout = await askVersion(connection, request, signal);
    const found = parseArtifactVersion(stdout);
    assertVariant(found.variant, request.variant, request.shown);
    return found;
  },
});

async function askVersion(connection: Connection, request: CheckVersion, signal: AbortSignal): Promise<string> {
  const sum = request.sha256?.toLowerCase() ?? "";
  const result = await connection.run(
    {
      argv: ["sh", "-c", versionScript(request.work), "e2e-version", sum],
      sudo: true,
      limitMs,
      task: "the artifact's --version",
    },
    signal,
  );
  if (result.status === 0) return result.stdout;
  const facts = {
    artifact: request.shown,
    status: result.status,
    output: outsideLines(result.stderr || result.stdout, 20),
  };
  if (result.status === wrongSum) {
    const found = outsideLine(result.stdout);
    throw new ClusterError(
      "artifact-invalid",
      `The artifact ${request.shown} has the SHA-256 checksum ${outside(found)}, not ${sum}.`,
      { hint: "Check `artifactSha256`, and whether ARTIFACT_URL is the intended release.", facts },
    );
  }
  throw new ClusterError(
    "artifact-invalid",
    `The artifact ${request.shown} failed to print its version with --version: ${reasonOf(result)}.`,
    { hint: "Make sure that it is a release artifact (an installer generator script), or download it again.", facts },
  );
}

/** Whether the artifact ran and failed, perhaps because the node lacks something. False if the file has another checksum or isn't an artifact. */
export function endedBadly(error: unknown): boolean {
  if (!(error instanceof ClusterError) || error.id !== "artifact-invalid") return false;
  const { status } = error.facts;
  return status !== undefined && status !== wrongSum;
}
