import { isIP } from "node:net";
import type { LocalArtifact } from "../artifact/artifact-download.ts";
import type { ArtifactLocation } from "../artifact/artifact-location.ts";
import { installPaths } from "../install-paths.ts";
import { curlConfig } from "./curl-config.ts";
import type { Phase, PhaseContext } from "./phase.ts";
import { reasonOf, runRemoteScript } from "./remote-script.ts";

export interface FetchArtifact {
  readonly artifact: ArtifactLocation;
  /** Brings the artifact to this machine; asked only where the node can't get it by itself. Who made this function removes the file. */
  readonly download: (
    onProgress: (receivedBytes: number, totalBytes: number | undefined) => void,
    signal: AbortSignal,
  ) => Promise<LocalArtifact>;
  /** Fulfilled once the node is prepared: only then every node has curl. */
  readonly prepared: Promise<void>;
}

const limitMs = 60 * 60_000;
const noCurl = 127;

/** Brings the artifact to the node: the node fetches it; where it can't, this machine does and sends it on. */
export const fetchArtifact = (request: FetchArtifact): Phase => ({
  title: "Fetch artifact",
  run: async (context, signal) => {
    if (request.artifact.kind === "url" && !isThisMachine(request.artifact.url)) {
      const reason = await fetchOnNode(request.artifact.url, request.prepared, context, signal);
      if (reason === undefined) return;
      context.progress.detail(
        1,
        `${context.reference} cannot fetch the artifact (${reason}): it goes through this machine`,
      );
    }
    await sendFromHere(request, context, signal);
  },
});

/** Without the last line's rename a file that was cut off would look whole. The reporter must not keep the session open: its sleep is mute. */
export const fetchScript = `
set -eu
umask 077
command -v curl >/dev/null || exit ${noCurl}
mkdir -p ${installPaths.workFolder}
cd ${installPaths.workFolder}
rm -f artifact.part artifact.headers
report() {
  while sleep 1 >/dev/null 2>&1; do
    total=$(sed -n 's/^[Cc]ontent-[Ll]ength: *\\([0-9]*\\).*/\\1/p' artifact.headers 2>/dev/null | tail -n 1)
    echo "size: $(stat -c %s artifact.part 2>/dev/null || echo 0) $total"
  done
}
report &
reporter=$!
status=0
curl --config - --dump-header artifact.headers --output artifact.part || status=$?
kill "$reporter" 2>/dev/null || :
rm -f artifact.headers
[ "$status" = 0 ] || exit "$status"
mv -f artifact.part ${installPaths.artifact}
`;

/** Resolves with why it failed, or `undefined`. */
async function fetchOnNode(
  url: string,
  prepared: Promise<void>,
  { connection, step }: PhaseContext,
  signal: AbortSignal,
): Promise<string | undefined> {
  const fetchOnce = async () =>
    connection.run(
      {
        argv: ["sh", "-c", fetchScript, "e2e-fetch"],
        sudo: true,
        stdin: curlConfig(url),
        limitMs,
        task: "downloading the artifact",
        onOutput: (_stream, chunk) => {
          const [, received, total] = /size: (\d+) (\d*)\n[^\n]*$/.exec(chunk) ?? [];
          if (received !== undefined) step.update(megabytes(Number(received), total ? Number(total) : undefined));
        },
      },
      signal,
    );
  const first = await fetchOnce();
  if (first.status !== noCurl) return first.status === 0 ? undefined : reasonOf(first);
  await prepared;
  const second = await fetchOnce();
  return second.status === 0 ? undefined : reasonOf(second);
}

async function sendFromHere(
  request: FetchArtifact,
  { connection, step, reference }: PhaseContext,
  signal: AbortSignal,
): Promise<void> {
  const file = await request.download((received, total) => {
    step.update(`${megabytes(received, total)} to this machine`);
  }, signal);
  await runRemoteScript(
    connection,
    {
      name: "e2e-artifact-folder",
      text: `main() { mkdir -p ${installPaths.workFolder}; }`,
      arguments: [],
      limitMs: 60_000,
      task: "making the installer's folder",
      failure: `${reference}: the installer's folder could not be made`,
      errorId: "remote-command-failed",
    },
    signal,
  );
  await connection.upload(
    { file: file.path },
    {
      path: installPaths.artifact,
      mode: 0o600,
      sudo: true,
      onProgress: (sent, total) => {
        step.update(`${megabytes(sent, total)} to ${reference}`);
      },
    },
    signal,
  );
}

/** An address that means another machine on the node than here. */
function isThisMachine(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "::1" ||
    (isIP(host) === 4 && host.startsWith("127."))
  );
}

/** `42 of 310 MB` */
export function megabytes(bytes: number, totalBytes: number | undefined): string {
  const rounded = (value: number): string => (value / 1e6).toFixed(value < 1e7 ? 1 : 0);
  return totalBytes === undefined ? `${rounded(bytes)} MB` : `${rounded(bytes)} of ${rounded(totalBytes)} MB`;
}
