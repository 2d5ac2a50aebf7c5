import { ClusterError } from "../errors.ts";
import { commandName, optionName } from "../references.ts";
import { commandLimitMs, type Connection } from "../ssh/connection/connection.ts";
import { shellText } from "../ssh/shell-text.ts";
import { outsideLine } from "../system/printable.ts";
import type { Work } from "../system/runtime.ts";
import { utf8Text } from "../system/utf8.ts";
import secretsFile from "./cluster-secrets.sh" with { type: "text" };
import { searchableMapping } from "./configuration/configuration-file.ts";
import { configurationSecrets } from "./configuration/configuration.ts";
import { mostSecretFiles } from "./folder/platform-file.ts";
import { frameFunction, parseBytes } from "./node-logs.ts";
import { installPaths } from "./install-paths.ts";
import { layouts } from "./layouts/find-layout.ts";

/** How much of each file is read. */
const mostBytes = 64_000;
/**
 * Limits for the secrets from a node, which may be hostile. Real clusters have about ten: a
 * license, keys, and a few passwords.
 */
const mostSecrets = 500;
const mostCharacters = 64_000;
/** Of all files that aren't text, which are masked in hexadecimal and base64 too. Real ones are keys of a kilobyte. */
const mostBinaryBytes = 4_000;

const configuration = `${installPaths.genconf}/config.yaml`;
/** The files in which the platform keeps its own secrets, by the name of their text. */
const platformFiles = [...new Set(layouts.flatMap((layout) => layout.secretFiles))].map(
  (path, index) => [`secret-${index}`, path] as const,
);
const files = [
  ["configuration", configuration] as const,
  ["status", installPaths.installStatus] as const,
  ...platformFiles,
];
/** Names for files whose paths only the node knows. All files together must fit into a command's result. */
const listedFiles = Array.from({ length: mostSecretFiles }, (_, index) => `listed-${index}`);
const unmaskedName = "unmasked";
const names = [...files.map(([name]) => name), ...listedFiles, unmaskedName];

export const secretsScript =
  frameFunction +
  shellText(secretsFile, {
    FILES: files.map((file) => file.join(" ")).join("\n"),
    LISTS: layouts.flatMap((layout) => layout.factFiles?.secretFiles ?? []).join(" "),
    MOST_LISTED: mostSecretFiles,
    MOST_BYTES: mostBytes,
  });

interface ClusterSecrets {
  /** For `Progress.hide`. */
  readonly values: readonly string[];
  /**
   * Whether the configuration is there and the installation has ended. Until then, the platform may
   * generate more secrets.
   */
  readonly areComplete: boolean;
  /** A sentence, without a full stop, about each file that is there and whose secrets aren't among the values. */
  readonly unmasked: readonly string[];
}

/**
 * Reads the cluster's secrets from the first master: those in its configuration, such as license
 * and password hash, and those that the platform has generated. They are masked in everything that
 * nodes print, and never shown.
 */
async function readClusterSecrets(
  connection: Connection,
  signal: AbortSignal,
): Promise<ClusterSecrets> {
  const argv = ["sh", "-s", "--", "e2e-secrets"];
  const { status, stdout } = await connection.run(
    {
      argv,
      sudo: true,
      stdin: secretsScript,
      isOutputHidden: true,
      limitMs: commandLimitMs,
      task: "reading the secrets to mask",
    },
    signal,
  );
  if (status === 0) {
    const secrets = await parseSecrets(stdout);
    if (secrets !== undefined) return secrets;
    throw new TooManySecrets();
  }
  throw new ClusterError(
    "remote-command-failed",
    `Cannot read from the first master which secrets to mask (status ${status}).`,
    {
      hint: `Until then, no text from the cluster is shown. Inspect the node: ${commandName("run")} with ${optionName("noTestEnv")} opens a shell on it.`,
      facts: { status },
    },
  );
}

/**
 * Hides the cluster's secrets, read from the first master, and warns of files that can't be masked,
 * except of those that `told` has already. Returns whether they are complete. Throws
 * `TooManySecrets` and the errors of the connection.
 */
export async function hideSecrets(
  { progress, signal }: Pick<Work, "progress" | "signal">,
  firstMaster: Connection,
  told = new Set<string>(),
): Promise<boolean> {
  const { values, areComplete, unmasked } = await readClusterSecrets(firstMaster, signal);
  for (const value of values) progress.hide(value);
  for (const line of unmasked) {
    if (!told.has(line)) progress.warn(line);
    told.add(line);
  }
  return areComplete;
}

/**
 * Thrown if the first master names too many secrets. No text from the nodes may be shown then,
 * because it can't be masked.
 */
export class TooManySecrets extends ClusterError {
  constructor() {
    super(
      "remote-command-failed",
      `The first master has more secrets to mask than a cluster can have (${mostSecrets}, or ${mostCharacters} characters).`,
      {
        hint: `No text from the cluster is shown. On that node, somebody may have changed ${configuration} or the platform's own secrets.`,
        facts: { mostSecrets, mostCharacters },
      },
    );
  }
}

/** Parses the output of `secretsScript`; undefined if there are more secrets than a cluster has. */
export async function parseSecrets(stdout: string): Promise<ClusterSecrets | undefined> {
  // Base64 needs four characters for three bytes.
  if (stdout.length > names.length * mostBytes * 1.4) return undefined;
  const found = parseBytes(stdout, names);
  const secret = [...found]
    .filter(([name]) => name !== "status" && name !== unmaskedName)
    .map(([, bytes]) => bytes);
  const values = await Promise.all(secret.map(secretsIn));
  const unique = [...new Set(values.flat())];
  const characters = unique.reduce((sum, value) => sum + value.length, 0);
  if (unique.length > mostSecrets || characters > mostCharacters) return undefined;
  const textOf = (name: string): string => found.get(name)?.toString("utf8") ?? "";
  const binary = secret.filter((bytes) => utf8Text(bytes) === undefined);
  const areShort = binary.reduce((sum, { length }) => sum + length, 0) <= mostBinaryBytes;
  return {
    values: [...unique, ...(areShort ? binary.map(encodedText) : [])],
    areComplete: found.has("configuration") && textOf("status").startsWith("exit "),
    unmasked: [...unmaskedFiles(textOf(unmaskedName)), ...(areShort ? [] : [longBinary])],
  };
}

const longBinary = `the secrets on the first master that are not text are not masked in hexadecimal and base64: they have more than ${mostBinaryBytes / 1000} kB`;

/** How programs print bytes: in hexadecimal, and in base64 with and without breaks. Each line is masked. */
function encodedText(bytes: Buffer): string {
  const [hex, base64] = [bytes.toString("hex"), bytes.toString("base64")];
  const wrapped = [64, 76].flatMap(
    (width) => base64.match(new RegExp(`.{16,${width}}`, "g")) ?? [],
  );
  return [hex, hex.toUpperCase(), base64.replaceAll("=", ""), ...wrapped].join("\n");
}

const reasons = {
  long: `it is longer than ${mostBytes / 1000} kB`,
  unreadable: "it is no file that root can read, or others than root can change the links to it",
} as const;

function unmaskedFiles(text: string): readonly string[] {
  const found = text
    .split("\n", names.length)
    .map((line) => /^(long|unreadable) (\/.*)$/.exec(line));
  return found.flatMap((fields) => {
    const [, reason, path] = fields ?? [];
    if (path === undefined) return [];
    const why = reasons[reason === "long" ? "long" : "unreadable"];
    return [`the secrets in ${outsideLine(path)} on the first master are not masked: ${why}`];
  });
}

/** Returns the secret values of a mapping (YAML or JSON), or the whole text if it is something else, such as a key. */
async function secretsIn(bytes: Buffer): Promise<readonly string[]> {
  const text = bytes.toString("utf8");
  try {
    const found = await searchableMapping(text);
    // A key may begin like a comment.
    if (found !== undefined && Object.keys(found).length > 0) return configurationSecrets(found);
  } catch {
    // A text that is nested too deeply isn't one of our configurations.
  }
  return [text];
}
