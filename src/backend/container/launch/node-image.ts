import { createHash } from "node:crypto";
import { appendFileSync, closeSync, openSync, rmSync } from "node:fs";
import { ClusterError, messageOf } from "../../../errors.ts";
import { moreDetail, optionName } from "../../../references.ts";
import { outside } from "../../../outside-text.ts";
import { withoutHeader } from "../../../ssh/shell-text.ts";
import {
  maskedPrintable,
  plainLine as lineOf,
  outsideLines,
  withoutFullStop,
} from "../../../system/printable.ts";
import { abortReason } from "../../../system/time-limit.ts";
import type { Progress } from "../../../system/runtime.ts";
import type { CreationRequest, ImagePreparation } from "../../contract.ts";
import { unknownDistribution } from "../../shared/machine-errors.ts";
import { type PackageFamily, distributions, sources } from "../distributions.ts";
import { indicates } from "../engine/engine-errors.ts";
import type { Engine } from "../engine/engine.ts";
import type { ContainerOptions } from "../options.ts";
import apt from "./apt.containerfile" with { type: "text" };
import dnf from "./dnf.containerfile" with { type: "text" };
import yum from "./yum.containerfile" with { type: "text" };

/** A builder may print nothing while it downloads a layer. `--timeout` limits the whole creation. */
const silenceLimitMs = 20 * 60_000;

/** The image that nodes are created from, and how to get it if the engine doesn't have it. */
export interface NodeImage {
  readonly name: string;
  readonly isPresent: boolean;
  /** Absent for the user's own image, which is pulled. */
  readonly containerfile?: string;
}

/** Only looks for the image; doesn't get it. */
export async function findNodeImage(
  engine: Engine,
  distribution: string,
  {
    options,
    imagePreparation,
  }: Pick<CreationRequest<ContainerOptions>, "options" | "imagePreparation">,
  signal: AbortSignal,
): Promise<NodeImage> {
  if (options.nodeImage !== undefined) {
    return {
      name: options.nodeImage,
      isPresent: await isPresent(engine, options.nodeImage, signal),
    };
  }
  const { image, containerfile } = nodeRecipe(distribution, imagePreparation);
  return { name: image, isPresent: await isPresent(engine, image, signal), containerfile };
}

async function isPresent(engine: Engine, image: string, signal: AbortSignal): Promise<boolean> {
  const words = ["image", "inspect", "--format={{.Id}}", image];
  const id = await engine.ask({ words, accepts: (stderr) => indicates(stderr, "gone") }, signal);
  return /^(?:sha256:)?[0-9a-f]{64}$/.test(id);
}

/** Builds or pulls the image if it is missing, which takes minutes. Throws `image-not-found` if that fails. */
export async function obtainNodeImage(
  engine: Engine,
  image: NodeImage,
  { progress, logFile }: { readonly progress: Progress; readonly logFile: string },
  signal: AbortSignal,
): Promise<void> {
  if (image.isPresent) return;
  const isBuilt = image.containerfile !== undefined;
  using step = progress.start(isBuilt ? "Build the node image" : "Pull the node image", image.name);
  const output: string[] = [];
  using log = buildLog(logFile, progress);
  const onOutput = (chunk: string): void => {
    output.push(chunk);
    log.add(chunk);
    const [line] = outsideLines(chunk, 1, 60);
    if (line !== undefined) step.update(line);
    for (const text of chunk.trimEnd().split("\n"))
      progress.detail(3, `${engine.kind.name}: ${outside(text)}`);
  };
  // Without --force-rm, Docker's classic builder keeps the container of the step that failed.
  const request = isBuilt
    ? {
        words: ["build", "--force-rm", `--tag=${image.name}`, "-"],
        stdin: Buffer.from(image.containerfile ?? ""),
      }
    : { words: ["pull", image.name] };
  try {
    const silence = { limitMs: silenceLimitMs, log: log.path };
    await engine.ask({ ...request, onOutput, silence }, signal);
  } catch (error) {
    if (signal.aborted) throw abortReason(error, signal);
    log.end();
    if (!isBuilt) throw notPulled(engine, image, error);
    throw notBuilt(engine, image, { output: output.join(""), logFile: log.path() }, error);
  }
  if (!(await isPresent(engine, image.name, signal)))
    throw notKept(engine, image, isBuilt ? "built" : "pulled");
  step.done();
}

interface BuildLog extends Disposable {
  add(chunk: string): void;
  /** Writes the last line, even if it isn't whole. */
  end(): void;
  /** Undefined if the file can't be written. */
  path(): string | undefined;
}

/**
 * Keeps the output in a file that can be read while it is written. It has whole lines only, so that
 * secrets in them are masked.
 */
function buildLog(path: string, progress: Progress): BuildLog {
  const state = { line: "", descriptor: openNew(path) };
  const write = (text: string): void => {
    if (state.descriptor === undefined || text === "") return;
    try {
      appendFileSync(
        state.descriptor,
        maskedPrintable(text, (given) => progress.mask(given)),
      );
    } catch {
      // A full disk, for example, must not end the build.
      close();
    }
  };
  const end = (): void => {
    write(state.line);
    state.line = "";
  };
  const close = (): void => {
    const { descriptor } = state;
    state.descriptor = undefined;
    if (descriptor !== undefined) closeSync(descriptor);
  };
  return {
    add: (chunk) => {
      const text = state.line + chunk;
      const stop = text.lastIndexOf("\n") + 1;
      state.line = text.slice(stop);
      write(text.slice(0, stop));
    },
    end,
    path: () => (state.descriptor === undefined ? undefined : path),
    [Symbol.dispose]: () => {
      end();
      close();
    },
  };
}

/** Another creation may still be writing to a file of this name. */
function openNew(path: string): number | undefined {
  try {
    rmSync(path, { force: true });
    return openSync(path, "wx", 0o600);
  } catch {
    return undefined;
  }
}

function notKept(
  { kind: { name, title } }: Engine,
  image: NodeImage,
  what: "built" | "pulled",
): ClusterError {
  return new ClusterError(
    "image-not-found",
    `${title} ${what} the image ${image.name}, but does not have it.`,
    {
      hint: `Check the settings of the ${name} command, such as its builder and platform: they decide where images go.`,
      facts: { image: image.name },
    },
  );
}

function notBuilt(
  { kind }: Engine,
  image: NodeImage,
  { output, logFile }: { readonly output: string; readonly logFile: string | undefined },
  error: unknown,
): unknown {
  if (!(error instanceof ClusterError) || error.id !== "engine-failed") return error;
  const { reason, step, cause } = readBuildFailure(output);
  const where = step === undefined ? "" : ` (at "${outside(step)}")`;
  const why = reason === undefined ? "the build's output does not name the cause" : outside(reason);
  const log =
    logFile === undefined ? moreDetail("-vvv", "the whole build") : `The whole build: ${logFile}`;
  return new ClusterError(
    "image-not-found",
    `Cannot build the node image ${image.name}: ${kind.name} build failed${where}: ${why}.`,
    {
      hint: `${buildAdvice(kind.title)[cause]} Or pass your own image with ${optionName("nodeImage")}. ${log}`,
      facts: {
        status: error.facts["status"],
        image: image.name,
        step: step === undefined ? undefined : outside(step),
        cause,
      },
      cause: error,
    },
  );
}

const buildAdvice = (title: string): Readonly<Record<BuildFailure["cause"], string>> => ({
  network: `Make sure that ${title}'s containers can reach the distribution's package servers; src/backend/container/README.md in the repository explains how to build behind a proxy or with a mirror.`,
  logins: `${title}'s configuration names a program for logins that fails, as "credsStore" or "credHelpers" in ~/.docker/config.json. The base images need no login: remove that line, or install the program.`,
  registry: `Make sure that ${title} can reach the registry of the base image, or load that image under its name.`,
  runtime: `${title} cannot run a build's commands on this computer. Check whether it can run any container: ${title.toLowerCase()} run --rm IMAGE true.`,
  unknown: "Check the network: the base image and the packages come from there.",
});

function notPulled({ kind }: Engine, image: NodeImage, error: unknown): unknown {
  if (!(error instanceof ClusterError) || error.id !== "engine-failed") return error;
  return new ClusterError(
    "image-not-found",
    `There is no image ${image.name}: ${messageOf(error)}`,
    {
      hint: `Run ${kind.name} images to see the images on this computer.`,
      facts: { ...ClusterError.marked(error).facts, image: image.name },
      cause: error,
    },
  );
}

/** The name of all images built here; each has its own tag. */
export const builtImages = "localhost/cluster-e2e-node";

interface NodeRecipe {
  /** The name with the image's tag: the same text always gives the same tag. */
  readonly image: string;
  readonly containerfile: string;
}

/** Returns how to build a distribution's node image for a platform. Throws `bad-usage` for an unknown distribution. */
export function nodeRecipe(
  distribution: string,
  preparation: ImagePreparation | undefined,
): NodeRecipe {
  const source = sources[distribution];
  if (source === undefined) {
    const instead = `pass an image with ${optionName("nodeImage")}`;
    throw unknownDistribution(distribution, {
      images: "No node image is",
      known: distributions,
      instead,
    });
  }
  const base = containerfileOf(source.from, recipes[source.family]);
  // The preparation comes last, so that the engine builds the steps before it only once for all platforms.
  const containerfile = preparation === undefined ? base : `${base}${preparationStep(preparation)}`;
  const hash = createHash("sha256").update(containerfile).digest("hex").slice(0, 16);
  const names = [distribution, ...(preparation === undefined ? [] : [preparation.name]), hash];
  return { image: `${builtImages}:${names.join("-")}`, containerfile };
}

/** Encoded, because not every builder reads multi-line scripts. */
const preparationStep = ({
  script,
}: ImagePreparation): string => `# What the platform needs on its nodes.
RUN echo ${Buffer.from(script).toString("base64")} | base64 -d | sh -s \\
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/cache/dnf /var/cache/yum
`;

/** The steps that install what a node needs. */
const recipes: Readonly<Record<PackageFamily, string>> = {
  apt: withoutHeader(apt).trimEnd(),
  dnf: withoutHeader(dnf).trimEnd(),
  yum: withoutHeader(yum).trimEnd(),
};

/**
 * Builds a container with a whole system. Masks units that can only fail or idle in one, above all those that a
 * privileged container would apply to the host's devices and terminals. Each node gets its own identity: host keys come
 * from outside, and the machine id is created at boot.
 */
function containerfileOf(from: string, packages: string): string {
  return `FROM ${from}
ENV container=docker
${packages}
RUN systemctl mask ${maskedUnits.join(" ")} \\
 && systemctl set-default multi-user.target
RUN rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub /var/lib/dbus/machine-id /run/nologin && : >/etc/machine-id
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]
`;
}

const maskedUnits = [
  "apt-daily-upgrade.timer",
  "apt-daily.timer",
  "dnf-makecache.timer",
  "dpkg-db-backup.timer",
  "e2scrub_all.timer",
  "e2scrub_reap.service",
  "fstrim.timer",
  "console-getty.service",
  "getty@.service",
  "serial-getty@.service",
  "getty-static.service",
  "dev-hugepages.mount",
  "dev-mqueue.mount",
  "sys-fs-fuse-connections.mount",
  "sys-kernel-config.mount",
  "sys-kernel-debug.mount",
  "sys-kernel-tracing.mount",
  "proc-sys-fs-binfmt_misc.automount",
  "systemd-journald-audit.socket",
  "systemd-modules-load.service",
  "systemd-remount-fs.service",
  "systemd-udevd.service",
  "systemd-udevd-control.socket",
  "systemd-udevd-kernel.socket",
  "systemd-udev-trigger.service",
  "systemd-update-utmp.service",
  "systemd-update-utmp-runlevel.service",
] as const;

/** Why an image could not be built, as far as the build's output shows. */
interface BuildFailure {
  /** The last message of the failing tool. */
  readonly reason: string | undefined;
  /** The beginning of the step that failed, such as `RUN apt-get update`. */
  readonly step: string | undefined;
  readonly cause: "logins" | "network" | "registry" | "runtime" | "unknown";
}

/** Reads the output of a failed `build` from either of Docker's builders or from Podman. */
export function readBuildFailure(output: string): BuildFailure {
  const lines = output.split("\n").map(plainLine);
  const reason = reasonIn(lines);
  return { reason, step: failedStep(lines), cause: causeOf(lines, reason) };
}

/** Removes colours and the prefix that BuildKit puts before a step's lines (`#12 3.456 `). */
const plainLine = (line: string): string =>
  line
    // oxlint-disable-next-line no-control-regex -- colours begin with one
    .replaceAll(/\u001B\[[0-9;]*m/g, "")
    .replace(/^#\d+ \d+\.\d+ /, "")
    .trim();

/** How tools begin their final message. The most specific pattern comes first. */
const reasonPatterns = [
  /\b(?:crun|runc)(?:: | creating | run failed| create failed)/,
  /^(?:E|Err(?::\d+)?)[: ] ?\S/,
  /^curl: \(\d+\)/,
  /\b(?:cannot find a valid baseurl|failed to download metadata|errors during downloading)\b/i,
  /\bOCI runtime\b/,
  /\b(?:pull access denied|manifest unknown|failed to resolve source metadata|initializing source docker|failed to do request)\b/i,
  /^(?:Get "https?:\/\/|Error response from daemon: )/,
  /^failed: /,
];

function reasonIn(lines: readonly string[]): string | undefined {
  for (const pattern of reasonPatterns) {
    const found = lines.findLast((line) => pattern.test(line));
    if (found !== undefined) return withoutFullStop(lineOf(shortened(found)));
  }
  return undefined;
}

/** Removes the command that the runtime was about to run. */
const shortened = (line: string): string =>
  line.replace(/^failed: /, "").replace(/ for \[.{0,500}\]/, "");

/** `Step 3/8 : …` (Docker's older builder), `#7 [2/6] …` (BuildKit), `STEP 3/8: …` (Podman). */
const stepPattern = /^(?:step \d+(?:\/\d+)? ?: |#\d+ \[[^\]]*\] )((?:RUN|FROM|COPY|ENV) .*)$/i;
const stepLength = 60;

function failedStep(lines: readonly string[]): string | undefined {
  const step = lines.findLast((line) => stepPattern.test(line));
  const text = stepPattern.exec(step ?? "")?.[1];
  return text === undefined ? undefined : lineOf(text, stepLength);
}

const signs: readonly (readonly [cause: BuildFailure["cause"], pattern: RegExp])[] = [
  ["logins", /\berror getting credentials\b/],
  ["runtime", /\b(?:OCI runtime|(?:crun|runc)(?:: | creating | run failed| create failed))/],
  [
    "registry",
    /pull access denied|manifest unknown|failed to resolve source metadata|initializing source docker|unauthorized: |toomanyrequests|pinging container registry|^Get "https?:\/\/|\bdial tcp: lookup /im,
  ],
  [
    "network",
    /temporary failure resolving|could not resolve|could not connect|unable to connect|connection timed out|connection refused|network is unreachable|failed to fetch|failed to download|cannot find a valid baseurl|errors during downloading|curl: \((?:5|6|7|28|35|56|60)\)/i,
  ],
];

/** Prefers the cause that the final message shows. */
function causeOf(lines: readonly string[], reason: string | undefined): BuildFailure["cause"] {
  const causeIn = (text: string): BuildFailure["cause"] | undefined =>
    signs.find(([, pattern]) => pattern.test(text))?.[0];
  return causeIn(reason ?? "") ?? causeIn(lines.join("\n")) ?? "unknown";
}
