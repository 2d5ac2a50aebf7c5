import { type Role, type WebEndpoint, roles } from "../../model/cluster-record.ts";
import { port as anyPort } from "../../model/parse-values.ts";
import { matching, oneOf, refined, string } from "../../model/reader.ts";
import { wholeNumber, wordOf } from "../../model/rule.ts";
import { isLinePattern } from "../../model/line-pattern.ts";
import { type Checked, problem } from "../../model/checked.ts";
import { parseJson } from "../../system/files/read-text.ts";
import { numbered, readDurationMs } from "../../system/amounts.ts";
import { isPlainLine, unicodeEscape } from "../../system/printable.ts";
import { parseConfiguration } from "../configuration/configuration-file.ts";
import type { Layout, NodeCondition } from "../layouts/layout.ts";
import {
  type FactReader,
  plainLineOf,
  readFact,
  readList,
  readMapping,
  readNumber,
  readRequired,
} from "./fact-reader.ts";

/** The contents of `platform.yaml`, with every list present. */
export interface PlatformFacts {
  /** 1 to 40 lower-case letters, digits and hyphens. */
  readonly name: string;
  /** One printable line of 1 to 50 characters. */
  readonly version: string;
  readonly description: string | undefined;
  readonly nodes: Readonly<Record<Role, NodeLimits>>;
  readonly packages: Layout["packages"];
  /** TCP ports that users' machines reach, besides 22 and that of the web UI. */
  readonly ports: readonly number[];
  readonly web: PlatformWeb | undefined;
  /** Time limit for one run of `check`; undefined: the usual one. */
  readonly checkSeconds: number | undefined;
  readonly conditions: readonly NodeCondition[];
  readonly kernelModules: readonly string[];
  readonly logs: PlatformLogs;
  /** Absolute paths on the first master. */
  readonly secrets: readonly string[];
}

interface PlatformLogs {
  readonly units: readonly string[];
  readonly files: readonly string[];
  /** Lines of the journal that are errors, unless one of `allowed` matches too; see line-pattern.ts. */
  readonly errors: readonly string[];
  readonly allowed: readonly string[];
}

/** How many nodes of a role a cluster may have. Absent: the product's own default or limit. */
interface NodeLimits {
  readonly default?: number;
  readonly min?: number;
  readonly max?: number;
}

interface PlatformWeb extends WebEndpoint {
  /** With https: the absolute path of the certificate authority's PEM file on masters. */
  readonly certificate: string | undefined;
}

/** A platform.yaml of a few lines is usual. */
export const mostFileBytes = 64 * 1024;
/** The line must fit into the beginning of an artifact that `create` reads. */
const mostHeadBytes = 12 * 1024;
const mostProblems = 50;
/** More of them could not be masked; see cluster-secrets.ts. */
export const mostSecretFiles = 20;

/** Parses the text of `platform.yaml`. `path` is the name that problems show. */
export async function parsePlatformFile(
  text: string,
  path: string,
): Promise<Checked<PlatformFacts>> {
  if (text.length > mostFileBytes)
    return problem(`${path}: it is larger than ${mostFileBytes / 1024} KiB.`);
  const parsed = await parseConfiguration(text, path);
  if (parsed.problems !== undefined) return parsed;
  const facts = readFacts(parsed.value);
  if (facts.problems !== undefined)
    return { problems: facts.problems.map((each) => `${path}: ${each}`) };
  if (platformHead(facts.value).length <= mostHeadBytes) return facts;
  return problem(
    `${path}: it has more than ${mostHeadBytes / 1024} KiB of settings; leave out what is not needed.`,
  );
}

/**
 * Parses the JSON in the third line of an artifact, without `# platform: `, by the same rules: it
 * is text from outside.
 */
export function parsePlatformHead(line: string): Checked<PlatformFacts> {
  if (line.length > mostHeadBytes) return problem(`it is longer than ${mostHeadBytes / 1024} KiB`);
  const found = parseJson(line);
  if (found === undefined) return problem("it is not JSON");
  const facts = readFacts(found);
  const seconds = facts.problems === undefined ? facts.value.checkSeconds : undefined;
  // node.sh, which has no parser, reads only this form.
  if (seconds === undefined || new RegExp(`"checkTimeout": *"${seconds}s"`).test(line))
    return facts;
  return problem(`checkTimeout: must be written as "${seconds}s" here`);
}

/** The fourth line of an artifact whose folder has a program `upgrade`. */
export const upgradeLine = "# upgrade: yes";

/** Returns the line of JSON that `parsePlatformHead` reads, in ASCII, with the keys in a fixed order. */
export function platformHead({
  nodes,
  checkSeconds,
  kernelModules,
  logs: { units, files, errors, allowed },
  secrets,
  ...facts
}: PlatformFacts): string {
  const limited = roles.filter((role) => Object.keys(nodes[role]).length > 0);
  const { name, version, description, ...others } = facts;
  const limits = Object.fromEntries(limited.map((role) => [nodeKeys[role], nodes[role]]));
  return asciiJson({
    name,
    version,
    description,
    nodes: limits,
    ...others,
    // node.sh reads this text.
    checkTimeout: checkSeconds === undefined ? undefined : `${checkSeconds}s`,
    kernel_modules: kernelModules,
    logs: {
      units,
      files,
      ...(errors.length > 0 && { errors }),
      ...(allowed.length > 0 && { allowed }),
    },
    secrets,
  });
}

/** JSON in ASCII, in which JSON.stringify's own line stays one line for every reader. */
export const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[^\x20-\x7e]/g, unicodeEscape);

const nodeKeys = { master: "masters", agent: "agents", public_agent: "public_agents" } as const;
const conditions = [
  "docker",
  "cgroups-1",
  "dns-port-free",
  "clock-synchronized",
] as const satisfies readonly NodeCondition[];

const absolutePath = {
  read: refined(matching(/^(?:\/[A-Za-z0-9._+@:,=~-]+)+$/), (path) =>
    path.length <= 200 && !/\/\.\.?(?:\/|$)/.test(path) ? path : undefined,
  ),
  what: "an absolute path of letters, digits and ._+@:,=~-",
};

function readFacts(found: unknown): Checked<PlatformFacts> {
  const reader: FactReader = { problems: [] };
  const top = readMapping(reader, "", found, [
    "name",
    "version",
    "description",
    "nodes",
    "packages",
    "ports",
    "web",
    "checkTimeout",
    "conditions",
    "kernel_modules",
    "logs",
    "secrets",
  ]);
  const facts: PlatformFacts = {
    name: readRequired(reader, "name", top["name"], {
      read: matching(/^[a-z][a-z0-9-]{0,39}$/),
      what: "1 to 40 lower-case letters, digits and hyphens that begin with a letter",
    }),
    version: readRequired(reader, "version", top["version"], {
      read: plainLineOf(50),
      what: "one printable line of 1 to 50 characters",
    }),
    description: readFact(reader, "description", top["description"], {
      read: plainLineOf(100),
      what: "one printable line of 1 to 100 characters",
    }),
    nodes: readNodes(reader, top["nodes"]),
    packages: readPackages(reader, top["packages"]),
    ...readReachable(reader, top),
    checkSeconds: readCheckSeconds(reader, top["checkTimeout"]),
    conditions: readList(reader, "conditions", top["conditions"], {
      most: conditions.length,
      ...wordOf(conditions),
    }),
    kernelModules: readList(reader, "kernel_modules", top["kernel_modules"], {
      most: 50,
      read: matching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/),
      what: "the name of a kernel module",
    }),
    logs: readLogs(reader, top["logs"]),
    secrets: readList(reader, "secrets", top["secrets"], {
      most: mostSecretFiles,
      ...absolutePath,
    }),
  };
  const { problems } = reader;
  if (problems.length === 0) return { value: facts };
  const more = problems.length - mostProblems;
  return {
    problems:
      more > 0
        ? [...problems.slice(0, mostProblems), `and ${numbered(more, "more problem")}`]
        : problems,
  };
}

/** The longest time limit for one run of `check`. */
export const mostCheckSeconds = 600;

function readCheckSeconds(reader: FactReader, found: unknown): number | undefined {
  const text = typeof found === "number" ? String(found) : found;
  return readFact(reader, "checkTimeout", text, {
    read: refined(string, (duration) => {
      const seconds = (readDurationMs(duration) ?? 0) / 1000;
      return Number.isInteger(seconds) && seconds >= 1 && seconds <= mostCheckSeconds
        ? seconds
        : undefined;
    }),
    what: `a duration of 1s to ${mostCheckSeconds / 60}m in whole seconds, such as 90s`,
  });
}

const mostNodes = 1000;

function readNodes(reader: FactReader, found: unknown): Readonly<Record<Role, NodeLimits>> {
  const given = readMapping(reader, "nodes", found, Object.values(nodeKeys));
  const limitsOf = (role: Role): NodeLimits => {
    const key = `nodes.${nodeKeys[role]}`;
    const entry = readMapping(reader, key, given[nodeKeys[role]], ["default", "min", "max"]);
    const number = wholeNumber(role === "master" ? 1 : 0, mostNodes);
    const read = (name: "default" | "min" | "max"): number | undefined =>
      readNumber(reader, `${key}.${name}`, entry[name], number);
    const [usual, min, max] = [read("default"), read("min"), read("max")];
    const refuse = (text: string): unknown => reader.problems.push(`${key}: ${text}`);
    if (min !== undefined && max !== undefined && min > max)
      refuse(`min (${min}) is larger than max (${max})`);
    else if (usual !== undefined && usual < (min ?? 0))
      refuse(`default (${usual}) is smaller than min (${min})`);
    else if (usual !== undefined && usual > (max ?? mostNodes))
      refuse(`default (${usual}) is larger than max (${max})`);
    return {
      ...(usual === undefined ? {} : { default: usual }),
      ...(min === undefined ? {} : { min }),
      ...(max === undefined ? {} : { max }),
    };
  };
  return {
    master: limitsOf("master"),
    agent: limitsOf("agent"),
    public_agent: limitsOf("public_agent"),
  };
}

function readPackages(reader: FactReader, found: unknown): Layout["packages"] {
  const given = readMapping(reader, "packages", found, ["apt", "dnf"]);
  const rules = {
    most: 200,
    read: matching(/^[a-zA-Z0-9][a-zA-Z0-9.+_-]{0,99}$/),
    what: "the name of a package",
  };
  return {
    apt: readList(reader, "packages.apt", given["apt"], rules),
    dnf: readList(reader, "packages.dnf", given["dnf"], rules),
  };
}

/** The first master serves the installer at this port (bootstrap/serve.ts). */
const installerPort = 18_080;

function readReachable(reader: FactReader, top: Readonly<Record<string, unknown>>) {
  const ports = readList(reader, "ports", top["ports"], {
    most: 100,
    ...anyPort,
  });
  const web = readWeb(reader, top["web"]);
  for (const [key, port] of [
    ...ports.map((each) => ["ports", each] as const),
    ["web.port", web?.port] as const,
  ]) {
    if (port === installerPort)
      reader.problems.push(`${key}: ${installerPort} is the port of the installer's server`);
    if (port === 22) reader.problems.push(`${key}: 22 is the port of SSH, which is always open`);
  }
  if (web !== undefined && ports.includes(web.port))
    reader.problems.push(`ports: ${web.port} is the port of the web UI, which is open anyway`);
  return { ports, web };
}

function readWeb(reader: FactReader, found: unknown): PlatformWeb | undefined {
  if (found === undefined) return undefined;
  const count = reader.problems.length;
  const given = readMapping(reader, "web", found, ["port", "path", "scheme", "certificate"]);
  if (reader.problems.length === count && given["port"] === undefined)
    reader.problems.push("web.port: is missing");
  const port = readNumber(reader, "web.port", given["port"], anyPort) ?? 0;
  const path = readFact(reader, "web.path", given["path"], {
    read: matching(/^\/(?!\/)[A-Za-z0-9._~%/-]{0,199}$/),
    what: "a path that begins with one / and has letters, digits and ._~%/-",
  });
  const scheme = readFact(reader, "web.scheme", given["scheme"], {
    read: oneOf("http", "https"),
    what: "http or https",
  });
  const certificate = readFact(reader, "web.certificate", given["certificate"], absolutePath);
  if (scheme === "https" && given["certificate"] === undefined)
    reader.problems.push(
      "web.certificate: is missing; https needs the file of the certificate's authority",
    );
  if ((given["scheme"] === undefined || scheme === "http") && given["certificate"] !== undefined)
    reader.problems.push("web.certificate: only https has one");
  return { port, path: path ?? "/", scheme: scheme === "https" ? "https" : "http", certificate };
}

function readLogs(reader: FactReader, found: unknown): PlatformLogs {
  const given = readMapping(reader, "logs", found, ["units", "files", "errors", "allowed"]);
  const patterns = (key: "errors" | "allowed"): readonly string[] =>
    readList(reader, `logs.${key}`, given[key], {
      most: 50,
      read: refined(string, (line) =>
        isPlainLine(line) && isLinePattern(line) ? line : undefined,
      ),
      what: "a pattern of at most 200 characters, in which at least 3 that follow each other are no *",
    });
  return {
    units: readList(reader, "logs.units", given["units"], {
      most: 50,
      read: matching(/^[A-Za-z0-9_][A-Za-z0-9_.:@\\-]{0,199}$/),
      what: "the name of a systemd unit",
    }),
    files: readList(reader, "logs.files", given["files"], { most: 50, ...absolutePath }),
    errors: patterns("errors"),
    allowed: patterns("allowed"),
  };
}
