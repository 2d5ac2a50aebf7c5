import {
  BadValue,
  type Invocation,
  type ValueType,
  type ValuesOf,
  flag,
  option,
  whileOptionsAreRead,
} from "../../cli/options/option.ts";
import {
  byRule,
  choice,
  count,
  duration,
  outputFormat,
  path as pathType,
  text,
  value,
  verbose,
} from "../../cli/options/value-types.ts";
import { type RequestedCounts, mostNodes } from "../../cluster/create/choose-counts.ts";
import type { SnapshotCopy } from "../../cluster/create/create-request.ts";
import { variants } from "../../model/cluster-record.ts";
import { sha256Rule } from "../../model/rule.ts";
import type { ArtifactLocation } from "../../platform/artifact/artifact-request.ts";
import { securityModes } from "../../platform/configuration/configuration.ts";
import type { Problems } from "../../cli/options/problems.ts";
import { urlSecrets } from "../../system/mask-url.ts";
import { variable } from "../../system/variable.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { creationOptions, declaredIf, endsByItself, scopeOptions } from "../backend-options.ts";
import { checkedValue, clusterId, timeout } from "../options.ts";
import { summary } from "../summary/step-summary.ts";

const masterCount = count(1, mostNodes);
/** A folder may have other defaults. */
const ofRelease = { defaultText: "1" };
const nodeCount = count(0, mostNodes);

export const workspaceDir = option(value(workspaceFolder, "directory"), {
  flag: "--workspace-dir",
  summary: "Folder for up to 2 GB of temporary files",
  defaultFrom: ({ environment }) => variable(environment, "TMPDIR") ?? "/tmp",
  defaultText: "the system's temporary folder",
});

export const artifactSha256 = option(byRule(sha256Rule), {
  flag: "--artifact-sha256",
  summary: "Expected SHA-256 checksum of the artifact; required for http:// from another computer",
});

/** Options for the software on the machines and its configuration. */
const platformOptions = {
  extraConfig: option(checkedValue(extraConfiguration, "file"), {
    flag: "--extra-config",
    summary: "YAML file with settings to add to the minimal default cluster configuration",
  }),
  workspaceDir,
  licenseKey: option(pathType, {
    flag: "--license-key",
    summary:
      "File with the license key; enterprise only (default: the file that CLUSTER_LICENSE_KEY_PATH names)",
  }),
  genconfDir: option(checkedValue(genconfFolder, "file"), {
    flag: "--genconf-dir",
    summary:
      "Folder with files to copy into the installer's genconf folder before the installer runs",
  }),
  securityMode: option(choice(securityModes), {
    flag: "--security-mode",
    summary: "Security mode (enterprise only); overrides the one in --extra-config",
  }),
  copyToMaster: option(checkedValue(copyToMaster, "file"), {
    flag: "--copy-to-master",
    placeholder: "</absolute/local/path:/remote/path>",
    summary: "File or folder to copy to the masters before the installation",
    repeatable: true,
  }),
  enableSelinuxEnforcing: flag({
    flag: "--enable-selinux-enforcing",
    summary: "Set SELinux to enforcing mode before the installation",
  }),
};

/** The names of the arguments and options that describe the new cluster. They can't be combined with a snapshot. */
export const clusterTraits = (kind: BackendKind): readonly string[] => [
  "artifact",
  "artifactSha256",
  "variant",
  "masters",
  "agents",
  "publicAgents",
  ...Object.keys(creationOptions(kind)),
  ...Object.keys(platformOptions),
];

const snapshotOrFile: ValueType<SnapshotCopy["from"]> = {
  parse: async (given, { cwd }) => {
    const { parseSnapshotReference } = await import("../../cluster/create/create-request.ts");
    const reference = parseSnapshotReference(given, cwd);
    if ("problem" in reference) throw new BadValue(reference.problem);
    return reference;
  },
  completes: "file",
  secretsIn: (given) =>
    "location" in given && "url" in given.location ? urlSecrets(given.location.url) : [],
};

const sha256 = option(byRule(sha256Rule), {
  flag: "--sha256",
  summary: "Expected SHA-256 checksum of the file in --from; required for a URL",
});

function copyOptions(kind: BackendKind) {
  const from = option(snapshotOrFile, {
    flag: "--from",
    placeholder: "<cluster_id:snapshot|file|url>",
    summary: kind.local?.copies ?? "",
    replaces: clusterTraits(kind),
  });
  return declaredIf(kind.local !== undefined, { from, sha256 });
}

export function checkFile(
  { from: given, sha256: sum }: Partial<CreateInput>,
  problems: Problems,
): void {
  const isFile = given !== undefined && "location" in given;
  if (sum !== undefined && !isFile) problems.add("--sha256: only allowed with a file in --from");
  if (isFile && "url" in given.location && sum === undefined)
    problems.add("--from: a URL requires --sha256");
}

/** A run that was killed together with its state folder leaves nodes that no later command finds. */
export const onceLifetimeOptions = ({ local }: BackendKind) =>
  declaredIf(local !== undefined, {
    lifetime: option(duration, {
      flag: "--lifetime",
      placeholder: "<duration>",
      summary: local?.lifetimes ?? "",
      default: 4 * 3_600_000,
      defaultText: "4h",
    }),
  });

const lifetimeOptions = ({ local }: BackendKind) =>
  declaredIf(local !== undefined, {
    lifetime: option(duration, {
      flag: "--lifetime",
      placeholder: "<duration>",
      summary: local?.lifetimes ?? "",
      defaultText: "no limit",
    }),
  });

export const createOptions = (kind: BackendKind) => ({
  variant: option(choice(variants), {
    flag: "--variant",
    summary:
      "Variant of the platform; must match the artifact, and is required if that has variants",
  }),
  masters: option(masterCount, {
    flag: "--masters",
    summary:
      "Number of masters; a folder may have another default; of a release artifact, 1, 3, 5, 7 or 9",
    ...ofRelease,
  }),
  agents: option(nodeCount, {
    flag: "--agents",
    summary: "Number of agents; a folder may have another default",
    ...ofRelease,
  }),
  publicAgents: option(nodeCount, {
    flag: "--public-agents",
    summary: "Number of public agents; a folder may have another default",
    ...ofRelease,
  }),
  ...scopeOptions(kind),
  ...creationOptions(kind),
  ...platformOptions,
  ...copyOptions(kind),
  ...lifetimeOptions(kind),
  artifactSha256,
  sshKey: option(value(ownKey, "file"), {
    flag: "--ssh-key",
    summary: "Your own private key for the nodes, instead of one generated for the cluster",
  }),
  wait: flag({ flag: "--wait", summary: "Also wait until the platform is ready, as `wait` does" }),
  superuserPassword: option(text, {
    flag: "--superuser-password",
    summary:
      'The superuser\'s password for the wait (enterprise only); required if --extra-config contains the hash of a password other than admin; "-" (recommended) prompts on a terminal or reads a line from stdin',
    secret: true,
  }),
  dryRun: flag({
    flag: "--dry-run",
    summary: `Show what would be created${endsByItself(kind) ? " and what it would cost" : ""}; change nothing`,
  }),
  keepOnFailure: flag({
    flag: "--keep-on-failure",
    summary: "Keep the machines as they are if the creation fails",
  }),
  ...declaredIf(!endsByItself(kind), {
    replace: flag({
      flag: "--replace",
      summary:
        "First remove the cluster of that id, if there is one; refused if it has snapshots. It stays if anything on the command line is wrong",
    }),
  }),
  summary,
  timeout: timeout("Time limit for the creation; with --wait, it includes the wait"),
  clusterId,
  output: outputFormat(["text", "json"]),
  verbose,
});

export type CreateInput = ValuesOf<ReturnType<typeof createOptions>> & {
  readonly artifact: ArtifactLocation;
};

export const requestedCounts = ({
  masters,
  agents,
  publicAgents,
}: Partial<CreateInput>): RequestedCounts => ({
  master: masters,
  agent: agents,
  public_agent: publicAgents,
});

/** The free space is checked later, because a lack of space is not a mistake on the command line. */
async function workspaceFolder(given: string, { cwd }: Invocation): Promise<string> {
  const path = await import("node:path");
  const { freeSpaceProblem } = await import("../../system/files/private-file.ts");
  const folder = path.resolve(cwd, given);
  const problem = await freeSpaceProblem(folder, 0);
  if (problem !== undefined) throw new BadValue(problem);
  return folder;
}

async function ownKey(given: string, { cwd }: Invocation): Promise<string> {
  const path = await import("node:path");
  const { readKeyPair } = await import("../../ssh/own-key.ts");
  const file = path.resolve(cwd, given);
  await readKeyPair(file);
  return file;
}

async function extraConfiguration(given: string, { cwd }: Invocation) {
  const path = await import("node:path");
  const { readExtraConfiguration } =
    await import("../../platform/configuration/configuration-file.ts");
  return readExtraConfiguration(path.resolve(cwd, given), whileOptionsAreRead());
}

async function genconfFolder(given: string, { cwd }: Invocation) {
  const path = await import("node:path");
  const { readGenconfFolder } = await import("../../platform/configuration/configuration-file.ts");
  return readGenconfFolder(path.resolve(cwd, given), whileOptionsAreRead());
}

async function copyToMaster(given: string) {
  const { listCopyToMaster, parseCopyToMaster } =
    await import("../../platform/configuration/install-configuration.ts");
  const copy = parseCopyToMaster(given);
  return copy.problems === undefined ? listCopyToMaster(copy.value, whileOptionsAreRead()) : copy;
}
