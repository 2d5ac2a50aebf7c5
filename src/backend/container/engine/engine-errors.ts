import { ClusterError, type ErrorId } from "../../../errors.ts";
import { moreDetail } from "../../../references.ts";
import { outside } from "../../../outside-text.ts";
import type { ProgramEnd } from "../../../system/processes/run-program.ts";
import { plainLine, withoutFullStop } from "../../../system/printable.ts";
import { connectionFailure } from "./connection-failure.ts";
import type { EngineKind } from "./engine-kind.ts";

/**
 * The engines' command lines have no error codes, only messages. Only this file and
 * connection-failure.ts read them. No message indicates different things in the two engines.
 * Docker's messages are the same since version 20. Podman's were observed in 4.3, and its sources
 * contain them up to 5.
 */
const meanings = {
  forbidden: [/permission denied while trying to connect/, /connect: permission denied/],
  silent: [
    /cannot connect to the docker daemon/,
    /is the docker daemon running/,
    /error during connect/,
    // Docker 29, of a socket that isn't there.
    /failed to connect to the docker api/,
    /(?:cannot|unable to) connect to podman/,
    /failed to connect: dial/,
  ],
  // A daemon that doesn't know the version at all has no such page.
  otherApi: [
    /client version \S{1,20} is too (?:old|new)/,
    /error response from daemon: page not found/,
  ],
  // Podman's own, which it only recommends to packages of distributions.
  lacking: [
    /could not find "[a-z-]{1,30}" in one of/,
    /could not find (?:a working conmon binary|slirp4netns|pasta)/,
    /rootless mode with multiple ids: exec: /,
  ],
  nameTaken: [
    /is already in use by container/,
    /the container name .{0,500} is already in use/,
    /that name is already in use/,
    /network with name .{0,500} already exists/,
    /network already exists/,
  ],
  noAddresses: [
    /non-overlapping ipv4 address pool/,
    /address pools have been fully subnetted/,
    /no available ipv4 addresses/,
    /could not find free subnet/,
    /failed to find free ip in range/,
    /no ip addresses available in range/,
  ],
  rangeTaken: [
    /pool overlaps with other one on this address space/,
    /subnet .{0,100} (?:is already used|conflicts with existing)/,
  ],
  noSpace: [/no space left on device/],
  gone: [
    /no such (?:container|network|image|object|volume)/,
    /image .{0,500} not found/,
    /network .{0,500} not found/,
    /removal of container .{0,500} is already in progress/,
    /container .{0,500} does not exist/,
    /image not known/,
    // What `docker cp` says of a container that it can't find.
    /destination .{0,500} must be a directory/,
    /could not find the file .{0,500} in container/,
  ],
  // A file or folder to mount.
  noSource: [/bind source path does not exist/, /statfs .{0,500}: no such file or directory/],
  off: [/is not running/, /can only kill running containers/],
  // After the network was removed and created again.
  notConnected: [/is not connected to (?:the )?network/],
  inUse: [
    /image is being used by/,
    /is using its referenced image/,
    /image has dependent child images/,
    /image used by/,
    /image is in use by/,
    /volume is in use/,
    /volume is being used/,
  ],
  // runc gives up after a while on a container that is busy. A later try succeeds.
  notFrozen: [/unable to freeze/],
} as const;

type EngineMeaning = keyof typeof meanings;

export const indicates = (text: string, meaning: EngineMeaning): boolean =>
  meanings[meaning].some((pattern) => pattern.test(text.toLowerCase()));

export function engineFailure(
  { name, title, advice }: EngineKind,
  words: readonly string[],
  end: ProgramEnd,
): ClusterError {
  const connection = connectionFailure({ title }, end.stderr);
  const reason =
    (connection && shown(connection.reason)) ||
    reasonIn(end.stderr) ||
    reasonIn(end.stdout) ||
    `it exited with status ${end.status ?? "unknown"}`;
  const meaning = (Object.keys(meanings) as EngineMeaning[]).find((candidate) =>
    indicates(end.stderr, candidate),
  );
  const facts = { command: words[0], status: end.status, meaning };
  const failure = (id: ErrorId, what: string, hint: string): ClusterError =>
    new ClusterError(id, `${what}: ${reason}.`, {
      hint,
      facts,
      transient: meaning === "notFrozen",
    });
  const unusable = (what: string, hint: string): ClusterError =>
    failure("machine-not-set-up", what, hint);
  if (connection !== undefined) return unusable(connection.what, connection.hint);
  switch (meaning) {
    case "forbidden":
      return unusable(`You may not use ${title} on this computer`, advice.forbidden);
    case "silent":
      return unusable(`${title} does not answer`, advice.silent);
    case "otherApi":
      return unusable(
        `The program ${name} and ${title}'s daemon have no version of the API in common`,
        "Install a docker command line that is as new as the daemon, such as docker-ce-cli from https://docs.docker.com/engine/install/, and unset DOCKER_API_VERSION.",
      );
    case "lacking":
      return unusable(`${title} lacks a program that it needs`, lackingAdvice);
    case "noAddresses":
      return failure(
        "capacity-lacking",
        `${title} has no free addresses for another network`,
        `Destroy clusters that you no longer need, or remove networks that nobody uses with: ${name} network prune. Stopped clusters lose theirs too, and get it back when they start. If there are none, a VPN's routes may cover all ranges. ${rangesAdvice}`,
      );
    case "noSpace":
      return failure("capacity-lacking", `${title}'s disk is full`, spaceAdvice(name));
    case "nameTaken":
    case "rangeTaken":
    case "gone":
    case "noSource":
    case "off":
    case "inUse":
    case "notConnected":
    case "notFrozen":
    case undefined:
      return failure(
        "engine-failed",
        `${name} ${words[0]} failed`,
        meaning === "gone" ? prunedAdvice(name) : moreDetail("-vv", "every command that was run"),
      );
  }
}

const lackingAdvice =
  "Install it. On Debian and Ubuntu, newuidmap is in the package uidmap, pasta in passt, and others are in packages of their names.";

export const rangesAdvice =
  "Give the engine larger or other ranges: default-address-pools of Docker, default_subnet_pools of Podman.";

/** Engines don't tell who has removed what they had. */
export const prunedAdvice = (name: string): string =>
  `Something may have removed it meanwhile, such as ${name} system prune, or a part of it. Try again when none runs.`;

const means =
  (meaning: EngineMeaning) =>
  (error: unknown): boolean =>
    error instanceof ClusterError && error.facts["meaning"] === meaning;

/** The engine's command that removes most would also remove the nodes of stopped clusters. */
export const spaceAdvice = (name: string): string =>
  `Free some space: destroy clusters that you no longer need, or remove images without a name with: ${name} image prune. Don't use system prune or volume prune: they remove stopped clusters and snapshots.`;

/** Whether the engine refused a name because something else has it. */
export const isNameTaken = means("nameTaken");

/** Whether something that a container was to mount isn't there. */
export const lacksSource = means("noSource");

/** Whether the engine refused a range of addresses because another network has them. */
export const isRangeTaken = means("rangeTaken");

export function engineMissing({ name, advice }: EngineKind, cause: unknown): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `There is no executable program ${name} on the PATH.`,
    {
      hint: advice.install,
      facts: { program: name },
      cause,
    },
  );
}

/** Whether an engine that can't be used, perhaps because it doesn't answer, is installed here and may have clusters. */
export const isPresent = (error: unknown): boolean =>
  !(
    error instanceof ClusterError &&
    (error.facts["program"] !== undefined || error.facts["rootless"] === true)
  );

/**
 * How a line with a reason begins, the most specific pattern first: `docker start` has two such
 * lines. Docker's program panics at some addresses.
 */
const prefixes = [/^(?:docker: )?Error response from daemon: /, /^Error: /, /^panic: /];

function reasonIn(text: string): string {
  const lines = text.split("\n").map((line) => line.trim());
  const prefixed = prefixes.map((prefix) =>
    lines.findLast((line) => prefix.test(line))?.replace(prefix, ""),
  );
  // A refused command line is followed by advice to read the help.
  const last = lines.findLast((line) => line !== "" && !/^(?:See '|Run ')/.test(line)) ?? "";
  return shown(prefixed.find((each) => each !== undefined) ?? last);
}

/** Without the password of an address, and without the question that our own advice answers. */
const shown = (line: string): string =>
  outside(
    withoutFullStop(
      plainLine(line)
        .replace(/\/\/[^/\s]{1,300}@/g, "//***@")
        .replace(/ Is the docker daemon running\?$/, ""),
    ),
  );
