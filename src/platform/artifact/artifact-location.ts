import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Checked } from "../../system/checked.ts";
import { problem } from "../../system/checked.ts";
import { maskUrl, parseUrl } from "../../system/mask-url.ts";

/** The location of a release artifact. `url` may be a secret (signed, or with a user part); `shown` is safe for people and logs. */
export type ArtifactLocation =
  | { readonly kind: "url"; readonly url: string; readonly shown: string }
  | { readonly kind: "file"; readonly path: string; readonly shown: string };

/** Parses ARTIFACT_URL: `https://…`, `http://…`, `file:///…` or a path, relative to `cwd`. It doesn't check whether anything is there. */
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
      return problem(`${maskUrl(text)}: ${scheme}:// is not supported; use https://, http://, file:// or a path.`);
  }
}

const fileLocation = (path: string): Checked<ArtifactLocation> => ({ value: { kind: "file", path, shown: path } });

function webLocation(text: string): Checked<ArtifactLocation> {
  const url = parseUrl(text);
  if (url === undefined) return problem(`${maskUrl(text)} is not a valid URL.`);
  return { value: { kind: "url", url: url.href, shown: maskUrl(url) } };
}

function fileUrlLocation(text: string): Checked<ArtifactLocation> {
  try {
    return fileLocation(fileURLToPath(text));
  } catch {
    return problem(`${maskUrl(text)} is not a file on this machine: use file:///absolute/path.`);
  }
}
