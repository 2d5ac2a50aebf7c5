import { createServer } from "node:net";
import { ClusterError } from "../../errors.ts";
import type { Engine } from "./engine.ts";
import { engineFailure } from "./engine-errors.ts";

/** What the engine tells of itself. */
export interface EngineFacts {
  readonly version: string;
  readonly operatingSystem: string;
  readonly cgroupVersion: "1" | "2";
  readonly isRootless: boolean;
  readonly hasAppArmor: boolean;
  readonly hasSelinux: boolean;
  readonly storageDriver: string;
  /** Where it keeps images and containers, on the machine that it runs on. */
  readonly rootFolder: string;
  readonly memoryBytes: number;
}

/** How this machine gets to the nodes: at their own addresses, or at ports of its loopback interface. */
export type Reach = "direct" | "published";

interface Information {
  readonly ServerVersion?: string;
  readonly OperatingSystem?: string;
  readonly CgroupVersion?: string;
  readonly SecurityOptions?: readonly string[] | null;
  readonly Driver?: string;
  readonly DockerRootDir?: string;
  readonly MemTotal?: number;
  /** Docker 20 ends with 0 where the daemon doesn't answer, or not to us, and says so here only. */
  readonly ServerErrors?: readonly string[] | null;
}

export async function readEngineFacts(engine: Engine, signal: AbortSignal): Promise<EngineFacts> {
  const text = await engine.ask({ words: ["info", "--format={{json .}}"] }, signal);
  const information = JSON.parse(text) as Information;
  const stderr = (information.ServerErrors ?? []).join("\n");
  if (stderr !== "") throw engineFailure(engine.program, ["info"], { status: 0, stdout: "", stderr });
  if (information.ServerVersion === undefined) throw notDocker();
  const has = (name: string): boolean =>
    (information.SecurityOptions ?? []).some((option) => option.split(",").includes(`name=${name}`));
  return {
    version: information.ServerVersion,
    operatingSystem: information.OperatingSystem ?? "",
    cgroupVersion: information.CgroupVersion === "2" ? "2" : "1",
    isRootless: has("rootless"),
    hasAppArmor: has("apparmor"),
    hasSelinux: has("selinux"),
    storageDriver: information.Driver ?? "",
    rootFolder: information.DockerRootDir ?? "",
    memoryBytes: information.MemTotal ?? 0,
  };
}

/** Throws `machine-not-set-up` where the engine can't serve. */
export async function findReach(
  engine: Engine,
  facts: EngineFacts,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<Reach> {
  if (facts.isRootless) throw rootless();
  if (platform === "darwin" || facts.operatingSystem === "Docker Desktop") return "published";
  const gateway = await bridgeAddress(engine, signal);
  if (gateway === "" || (await isOwnAddress(gateway))) return "direct";
  throw new ClusterError(
    "machine-not-set-up",
    `Docker runs on another machine: its bridge's address ${gateway} is none of this machine's.`,
    { hint: "Run this program where Docker runs, or unset DOCKER_HOST.", facts: { gateway } },
  );
}

/** Empty where there is no such network, or none that tells. */
async function bridgeAddress(engine: Engine, signal: AbortSignal): Promise<string> {
  const format = "--format={{range .IPAM.Config}}{{.Gateway}} {{end}}";
  const text = await engine.ask({ words: ["network", "inspect", format, "bridge"], accepts: () => true }, signal);
  return text.split(" ").find((address) => /^[0-9.]+$/.test(address)) ?? "";
}

/** Asked by taking a port there: a bridge to which no container is connected yet isn't among the interfaces that the runtime lists. */
function isOwnAddress(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(0, address, () => server.close(() => resolve(true)));
  });
}

/** Podman's `docker` answers in a form of its own. */
function notDocker(): ClusterError {
  return new ClusterError("machine-not-set-up", "The program docker on the PATH is not Docker's: Podman can't serve.", {
    hint: "Install Docker, version 20.10 or later: https://docs.docker.com/engine/install/",
  });
}

function rootless(): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    "This Docker runs without root: its containers can run no whole system, and this machine can't reach their addresses.",
    { hint: "Use the system's Docker: unset DOCKER_HOST, or docker context use default", facts: { rootless: true } },
  );
}
