import type { LocalArtifact } from "../artifact/artifact-download.ts";
import type { ArtifactLocation } from "../artifact/artifact-request.ts";
import type { WorkPaths } from "../install-paths.ts";
import { shellText } from "../../ssh/shell-text.ts";
import fetchFile from "./fetch-artifact.sh" with { type: "text" };
import { type Phase, type PhaseContext, makeFolders, reasonOf } from "./phase.ts";
import type { Variant } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { outside } from "../../outside-text.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import { shortStdinBytes } from "../../ssh/connection/root-shell.ts";
import { assertVariant } from "../artifact/artifact-head.ts";
import { type ArtifactVersion, parseArtifactVersion } from "../artifact/artifact-version.ts";
import versionFile from "./check-version.sh" with { type: "text" };
import { isLoopback, mostBytes } from "../../system/network.ts";
import { outsideLine, outsideLines } from "../../system/printable.ts";

export interface FetchArtifact {
  readonly artifact: ArtifactLocation;
  /**
   * Downloads the artifact to this machine, if the node can't fetch it. The owner of this function
   * removes the file.
   */
  readonly download: (
    onProgress: (receivedBytes: number, totalBytes: number | undefined) => void,
    signal: AbortSignal,
  ) => Promise<LocalArtifact>;
  /**
   * Resolves once the node is prepared: only then is curl certain to be there, and the session of
   * the preparation free.
   */
  readonly untilPrepared: () => Promise<void>;
  readonly paths: WorkPaths;
}

const limitMs = 60 * 60_000;
const noCurl = 127;

/** Fetches the artifact on the node; if the node can't, this machine downloads it and sends it to the node. */
export const fetchArtifact = (request: FetchArtifact): Phase => ({
  title: "Fetch artifact",
  run: async (context, signal) => {
    if (request.artifact.kind === "url" && !isThisMachine(request.artifact.url)) {
      const reason = await fetchOnNode(request.artifact.url, request, context, signal);
      if (reason === undefined) return;
      context.progress.detail(
        1,
        `${context.reference} cannot download the artifact (${reason}), so this computer downloads and uploads it`,
      );
    }
    await sendFromHere(request, context, signal);
  },
});

export const fetchScript = (
  { folder, artifact }: WorkPaths,
  most: number = mostBytes.artifact,
): string =>
  shellText(fetchFile, { FOLDER: folder, ARTIFACT: artifact, MOST: most, NO_CURL: noCurl });

/** Resolves with the reason for a failure, or `undefined`. */
async function fetchOnNode(
  url: string,
  { untilPrepared, paths }: Pick<FetchArtifact, "untilPrepared" | "paths">,
  { connection, step }: PhaseContext,
  signal: AbortSignal,
): Promise<string | undefined> {
  const fetchOnce = async () =>
    connection.run(
      {
        argv: ["sh", "-c", fetchScript(paths), "e2e-fetch"],
        sudo: true,
        stdin: curlConfig(url),
        limitMs,
        task: "downloading the artifact",
        onOutput: (_stream, chunk) => {
          const [, received, total] = /size: (\d+) (\d*)\n[^\n]*$/.exec(chunk) ?? [];
          if (received !== undefined)
            step.update(megabytes(Number(received), total ? Number(total) : undefined));
        },
      },
      signal,
    );
  const first = await fetchOnce();
  if (first.status !== noCurl) return first.status === 0 ? undefined : reasonOf(first);
  await untilPrepared();
  const second = await fetchOnce();
  return second.status === 0 ? undefined : reasonOf(second);
}

async function sendFromHere(
  request: FetchArtifact,
  { connection, step, reference }: PhaseContext,
  signal: AbortSignal,
): Promise<void> {
  const { file } = await request.download((received, total) => {
    step.update(`${megabytes(received, total)} to this computer`);
  }, signal);
  // A small file is sent in less time than another session takes to begin.
  if (file.sizeBytes <= shortStdinBytes) await request.untilPrepared();
  await makeFolders(
    { connection, reference },
    {
      name: "e2e-artifact-folder",
      errorId: "remote-command-failed",
      paths: [request.paths.folder],
      what: "the installer's folder",
    },
    signal,
  );
  await connection.upload(
    { file },
    {
      path: request.paths.artifact,
      mode: 0o600,
      sudo: true,
      onProgress: (sent, total) => {
        step.update(`${megabytes(sent, total)} to ${reference}`);
      },
    },
    signal,
  );
}

/** Whether the address means another machine on the node than it does here. */
function isThisMachine(text: string): boolean {
  const url = new URL(text);
  return isLoopback(url) || url.hostname.endsWith(".localhost");
}

/** `42 of 310 MB` */
export function megabytes(bytes: number, totalBytes: number | undefined): string {
  const rounded = (value: number): string => (value / 1e6).toFixed(value < 1e7 ? 1 : 0);
  return totalBytes === undefined
    ? `${rounded(bytes)} MB`
    : `${rounded(bytes)} of ${rounded(totalBytes)} MB`;
}

/**
 * Returns a configuration for `curl --config -`. A URL can be a secret, so it travels by stdin,
 * which no process list shows. All options work with curl 7.29 (CentOS 7).
 */
export function curlConfig(url: string): string {
  // The downloaded file runs as root, so no redirect may lead from https to http.
  const redirects = url.startsWith("https:") ? "=https" : "=http,https";
  return [
    `url = "${url.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`,
    "globoff",
    "fail",
    "silent",
    "show-error",
    "location",
    `proto-redir = "${redirects}"`,
    "max-redirs = 10",
    "connect-timeout = 10",
    // Less than 1 KB/s for half a minute counts as cut off.
    "speed-limit = 1000",
    "speed-time = 30",
    "retry = 2",
    "retry-delay = 2",
    "",
  ].join("\n");
}

interface CheckVersion {
  readonly variant: Variant;
  /** Hexadecimal. */
  readonly sha256: string | undefined;
  /** The artifact's location, safe to show. */
  readonly shown: string;
  readonly paths: WorkPaths;
}

// The first run of some artifacts unpacks and loads a container image.
const versionLimitMs = 15 * 60_000;
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

async function askVersion(
  connection: Connection,
  request: CheckVersion,
  signal: AbortSignal,
): Promise<string> {
  const sum = request.sha256?.toLowerCase() ?? "";
  const result = await connection.run(
    {
      argv: ["sh", "-c", versionScript(request.paths), "e2e-version", sum],
      sudo: true,
      limitMs: versionLimitMs,
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
      {
        hint: `Check ${optionName("artifactSha256")}, and whether this is the intended release.`,
        facts,
      },
    );
  }
  throw new ClusterError(
    "artifact-invalid",
    `The artifact ${request.shown} failed to print its version with --version: ${reasonOf(result)}.`,
    {
      hint: "Make sure that it is a release artifact (an installer generator script), or download it again.",
      facts,
    },
  );
}

/** Whether the artifact ran and failed, perhaps because the node lacks something. */
export function endedBadly(error: unknown): boolean {
  if (!(error instanceof ClusterError) || error.id !== "artifact-invalid") return false;
  const { status } = error.facts;
  return status !== undefined && status !== wrongSum;
}
