import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ClusterError, type ErrorDetail, messageOf, quoted } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { didYouMean, nearest } from "../../model/rule.ts";
import { type Checked, problem } from "../../model/checked.ts";
import { RefusedAnswer, bodyLength, isLoopback, requestFile } from "../../system/network.ts";
import { networkFailure } from "../../system/network-failure.ts";
import { throughProxy } from "../../system/proxy.ts";
import type { FileFacts } from "../../system/files/listed-file.ts";
import { isAccessible, isFolder } from "../../system/files/private-file.ts";
import { maskUrl } from "../../system/mask-url.ts";
import { exampleNames } from "../examples/example-names.ts";
import {
  type PlatformFolder,
  platformFolderOf,
  readPlatformFolder,
} from "../folder/read-folder.ts";

export type WebLocation = Extract<ArtifactLocation, { readonly kind: "url" }>;

/**
 * Requests an artifact. Resolves with the answer (200, 206 or 416), its body unread. The user part goes only to the artifact's own origin. Throws
 * `artifact-unreachable`, also for a redirect from https to http, because the artifact runs as root.
 */
export async function requestArtifact(
  location: WebLocation,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await accepted(await requestFile(location.url, headers, signal), location);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError) throw error;
    throw error instanceof RefusedAnswer
      ? artifactUnreachable(location.shown, messageOf(error), { hint: refusedHint })
      : requestFailure(location.shown, error);
  }
}

const acceptedStatuses: ReadonlySet<number> = new Set([200, 206, 416]);
const refusedHint =
  "Pass the URL that serves the file itself, or download the file and pass its path.";

async function accepted(response: Response, location: WebLocation): Promise<Response> {
  if (acceptedStatuses.has(response.status)) return response;
  await response.body?.cancel();
  throw answerFailure(location.shown, response.status, throughProxy(new URL(location.url)));
}

/** The part of the artifact that an answer's body holds. */
interface AnswerExtent {
  /** Position of the body's first byte in the artifact. */
  readonly offset: number;
  /** Size of the whole artifact; undefined if the server doesn't send it. */
  readonly totalBytes: number | undefined;
  /** Identifies this exact file in a later request for the rest; undefined if the server sends nothing reliable. */
  readonly validator: string | undefined;
}

/** Reads the extent from the headers of a 200 or 206. */
export function answerExtent(response: Response, shown: string): AnswerExtent {
  const { headers } = response;
  const entityTag = headers.get("etag");
  const validator =
    (entityTag?.startsWith('"') === true ? entityTag : headers.get("last-modified")) ?? undefined;
  if (response.status !== 206) return { offset: 0, totalBytes: bodyLength(response), validator };
  const [, offset, total] =
    /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
  if (offset === undefined)
    throw artifactUnreachable(
      shown,
      "the server sent part of it without a Content-Range header.",
      {},
    );
  return {
    offset: Number(offset),
    totalBytes: total === "*" ? undefined : Number(total),
    validator,
  };
}

/** Yields the body's chunks; leaving the loop ends the transfer. Throws a transient `artifact-unreachable` if it breaks off. */
export async function* answerBody(
  response: Response,
  shown: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (response.body === null) return;
  try {
    yield* response.body;
  } catch (error) {
    signal.throwIfAborted();
    throw requestFailure(shown, error);
  }
}

/** `reason` is a sentence that begins in lower case. It must contain nothing of the URL except `shown`. */
export function artifactUnreachable(
  shown: string,
  reason: string,
  detail: ErrorDetail,
): ClusterError {
  return new ClusterError("artifact-unreachable", `Cannot read the artifact ${shown}: ${reason}`, {
    hint: "Check ARTIFACT_URL, or download the file yourself and pass its path.",
    ...detail,
    facts: { artifact: shown, ...detail.facts },
  });
}

/** The server answered a request for a part with one that begins elsewhere. */
export const otherPart = (shown: string): ClusterError =>
  artifactUnreachable(shown, "the server sent a different part than requested.", {});

export function answerFailure(shown: string, status: number, through = ""): ClusterError {
  const { reason, hint } = refusals[status] ?? {
    reason: status >= 500 ? "the server failed" : "the server answered",
  };
  return artifactUnreachable(shown, `${reason} (HTTP ${status})${through}.`, {
    transient: status >= 500 || status === 408 || status === 425 || status === 429,
    facts: { status },
    ...(hint === undefined ? {} : { hint }),
  });
}

function requestFailure(shown: string, error: unknown): ClusterError {
  const { code, reason, transient, isTls } = networkFailure(error);
  return artifactUnreachable(shown, `${reason} (${code}).`, {
    transient,
    facts: { code },
    hint: isTls ? tlsHint : networkHint,
  });
}

interface Refusal {
  readonly reason: string;
  readonly hint?: string;
}

const signedHint =
  "Check the user name or the token in the URL. If it is a signed URL that has expired, get a new one.";
const refusals: Readonly<Record<number, Refusal>> = {
  401: { reason: "the server requires a login", hint: signedHint },
  403: { reason: "the server denies access", hint: signedHint },
  404: { reason: "the server has no such file", hint: "Check ARTIFACT_URL." },
  410: { reason: "the server no longer has the file", hint: "Check ARTIFACT_URL." },
};

const networkHint =
  "Check the address, the network and the proxy variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.";
const tlsHint =
  "For a private certificate authority, set NODE_EXTRA_CA_CERTS to a file with its certificate in PEM; or download the artifact yourself and pass its path.";

/**
 * The location of an artifact: a release's, or a folder that is packed into one. `url` may be a secret (signed, or with a user part); `shown` is safe
 * for people and logs.
 */
export type ArtifactLocation =
  | { readonly kind: "url"; readonly url: string; readonly shown: string }
  | {
      readonly kind: "file";
      readonly path: string;
      readonly shown: string;
      /** The file that was checked, once it was. */
      readonly file?: FileFacts;
    }
  | { readonly kind: "folder"; readonly platform: PlatformFolder; readonly shown: string };

/** Returns the problem with an artifact that anyone on the way could replace: plain http from another computer, without a checksum. */
export function checksumProblem(
  artifact: ArtifactLocation,
  sha256: string | undefined,
): string | undefined {
  if (artifact.kind !== "url" || sha256 !== undefined) return undefined;
  const url = new URL(artifact.url);
  if (url.protocol !== "http:" || isLoopback(url)) return undefined;
  return `${artifact.shown}: plain http requires ${optionName("artifactSha256")}, because anyone on the way can change the file; or use https://`;
}

const examplePrefix = "example:";

/** Parses ARTIFACT_URL, and reads the folder that it may name, or an example (`example:etcd`). Reports all problems of a folder at once. */
export async function locateArtifact(
  text: string,
  cwd: string,
  signal: AbortSignal,
): Promise<Checked<ArtifactLocation>> {
  if (text.startsWith(examplePrefix)) return locateExample(text);
  const location = parseArtifactLocation(text, cwd);
  const meant = exampleNames.find((each) => each === text);
  if (meant !== undefined && !(await isAccessible(resolve(cwd, text))))
    return problem(`there is no such folder or file; did you mean ${examplePrefix}${meant}?`);
  return location.value?.kind === "file" ? locatePath(location.value.path, signal) : location;
}

/** Like `locateArtifact`, for a path (relative to the current folder) or an example, but no URL. */
export const locateFile = async (
  text: string,
  signal: AbortSignal,
): Promise<Checked<ArtifactLocation>> =>
  text.startsWith(examplePrefix) ? locateExample(text) : locatePath(resolve(text), signal);

async function locateExample(text: string): Promise<Checked<ArtifactLocation>> {
  const name = exampleNames.find((each) => text === `${examplePrefix}${each}`);
  if (name === undefined) {
    const known = exampleNames.map((each) => `${examplePrefix}${each}`);
    return problem(
      `${quoted(text)} is none of the examples ${known.join(", ")}; a path of that name is written ./${text}${didYouMean(nearest(text, known))}`,
    );
  }
  const { examples } = await import("../examples/examples.ts");
  return folderLocation(text, await platformFolderOf(text, examples[name]));
}

const folderLocation = (
  shown: string,
  { value: platform, problems }: Checked<PlatformFolder>,
): Checked<ArtifactLocation> =>
  problems === undefined ? { value: { kind: "folder", platform, shown } } : { problems };

async function locatePath(path: string, signal: AbortSignal): Promise<Checked<ArtifactLocation>> {
  if (!(await isFolder(path))) return fileLocation(path);
  return folderLocation(path, await readPlatformFolder(path, signal));
}

/** Parses ARTIFACT_URL: `https://…`, `http://…`, `file:///…` or a path, relative to `cwd`. */
export function parseArtifactLocation(text: string, cwd: string): Checked<ArtifactLocation> {
  if (text.trim() === "") return problem("the value is empty");
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      return fileLocation(resolve(cwd, text));
    case "http":
    case "https":
      return webLocation(text);
    case "file":
      return fileUrlLocation(text);
    default:
      return problem(
        `${maskUrl(text)}: ${scheme}:// is not supported; use https://, http://, file:// or a path.`,
      );
  }
}

const fileLocation = (path: string): Checked<ArtifactLocation> => ({
  value: { kind: "file", path, shown: path },
});

function webLocation(text: string): Checked<ArtifactLocation> {
  const url = URL.parse(text);
  if (url === null) return problem(`${maskUrl(text)} is not a valid URL.`);
  return { value: { kind: "url", url: url.href, shown: maskUrl(url) } };
}

function fileUrlLocation(text: string): Checked<ArtifactLocation> {
  try {
    return fileLocation(fileURLToPath(text));
  } catch {
    return problem(`${maskUrl(text)} is not a file on this computer: use file:///absolute/path.`);
  }
}
