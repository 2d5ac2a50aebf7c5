import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ClusterError, type ErrorDetail, quoted } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { didYouMean, nearest } from "../../model/rule.ts";
import { type Checked, problem } from "../../model/checked.ts";
import type { WebFailure, WebFile } from "../../system/files/download.ts";
import { isLoopback } from "../../system/network.ts";
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
 * An artifact on the web. The user part of its URL goes only to its own origin. It runs as root, so
 * no redirect may lead from https to http.
 */
export const webArtifact = ({ url, shown }: WebLocation): WebFile => ({
  url,
  failed: (failure) => unreachable(shown, failure),
});

export function unreachable(shown: string, failure: WebFailure): ClusterError {
  const { cause, reason, transient = false, facts = {} } = failure;
  const hint = facts.status === undefined ? causeHints[cause] : statusHints[facts.status];
  return artifactUnreachable(shown, reason, {
    transient,
    facts,
    ...(hint !== undefined && { hint }),
  });
}

/** `reason` is a sentence that begins in lower case. It must contain nothing of the URL except `shown`. */
export function artifactUnreachable(
  shown: string,
  reason: string,
  detail: ErrorDetail,
): ClusterError {
  return new ClusterError("artifact-unreachable", `Cannot read the artifact ${shown}: ${reason}`, {
    hint: "Check the URL, or download the file yourself and pass its path.",
    ...detail,
    facts: { artifact: shown, ...detail.facts },
  });
}

const signedHint =
  "Check the user name or the token in the URL. If it is a signed URL that has expired, get a new one.";
const statusHints: Readonly<Record<number, string>> = {
  401: signedHint,
  403: signedHint,
  404: "Check the URL.",
  410: "Check the URL.",
};

const causeHints: Readonly<Partial<Record<WebFailure["cause"], string>>> = {
  redirect: "Pass the URL that serves the file itself, or download the file and pass its path.",
  network:
    "Check the address, the network and the proxy variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.",
  certificate:
    "For a private certificate authority, set NODE_EXTRA_CA_CERTS to a file with its certificate in PEM; or download the artifact yourself and pass its path.",
};

/**
 * The location of an artifact: a release's, or a folder that is packed into one. `url` may be a
 * secret (signed, or with a user part); `shown` is safe for people and logs.
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

/**
 * Returns the problem with an artifact that anyone on the way could replace: plain http from
 * another computer, without a checksum.
 */
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

/**
 * Parses PLATFORM, and reads the folder that it may name, or an example (`example:etcd`).
 * Reports all problems of a folder at once.
 */
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

/** Parses the location of an artifact: `https://…`, `http://…`, `file:///…` or a path, relative to `cwd`. */
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
