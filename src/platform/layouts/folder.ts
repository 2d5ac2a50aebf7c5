import { shellText } from "../../ssh/shell-text.ts";
import type { PlatformFacts } from "../folder/platform-file.ts";
import { installWork } from "../install-paths.ts";
import type { Layout } from "./layout.ts";
import confineDocker from "./confine-docker.sh" with { type: "text" };
import containerFile from "./docker-container.sh" with { type: "text" };
import imageFile from "./docker-image.sh" with { type: "text" };

/** The folder of such a platform on a node. The platform's artifact writes it; see folder/install.sh. */
export const platformRoot = "/opt/cluster-platform";
const root = platformRoot;
const folder = `${root}/folder`;

/** Returns the layout of a platform that is a folder. Without facts, it has only what all such platforms share. */
export function folderLayout(facts?: PlatformFacts): Layout {
  const { web, conditions = [], ports = [] } = facts ?? {};
  const hasDocker = conditions.includes("docker");
  return {
    name: "folder",
    headVariants: { none: "none" },
    installScript: "platform_install.sh",
    installRoles: { master: "master", agent: "agent", public_agent: "public_agent" },
    returnEarlyFlag: "--no-block",
    setupUnits: [],
    versionFile: `${root}/version.json`,
    installedVariant: () => "none",
    environmentFile: `${root}/environment`,
    testsFolders: [`${folder}/tests`, folder],
    nodeChecks: [[`${root}/check-node`]],
    nodeCheckWrapper: undefined,
    bootstrapConfigFile: `${root}/web.json`,
    web: web && {
      endpoint: { scheme: web.scheme, port: web.port, path: web.path },
      authority: web.certificate === undefined ? undefined : { file: web.certificate },
    },
    // The first master has the second one before its own installation begins; other nodes may be quicker.
    secretFiles: [`${root}/secret`, `${installWork.genconf}/secret`],
    installedMarker: `${root}/installed`,
    masterPorts: ports,
    publicPorts: [...new Set([...(web === undefined ? [] : [web.port]), ...ports])],
    variablePrefixes: ["CLUSTER_"],
    needs: ["bash", "curl", "tar", "gzip", ...(hasDocker ? ["docker"] : [])],
    packages: facts?.packages ?? { apt: [], dnf: [] },
    kernelModules: facts?.kernelModules ?? [],
    enterpriseNeeds: [],
    conditions: ({ nodesKeepTime }) =>
      conditions.filter((each) => nodesKeepTime || each !== "clock-synchronized"),
    imageSetup: hasDocker ? shellText(imageFile) + shellText(confineDocker) : "",
    containerSetup: hasDocker ? shellText(containerFile) + shellText(confineDocker) : "",
    installShims: () => ({}),
    baseConfiguration: () => ({}),
    configurationFormat: "json",
    release: undefined,
    factFiles: {
      facts: `${root}/platform.json`,
      secretFiles: `${root}/secret-files`,
      logUnits: `${root}/log-units`,
      logFiles: `${root}/log-files`,
    },
    upgrade: {
      words: () => ["--genconf"],
      script: { file: "platform_install.sh" },
      scriptArguments: (role) => ["--upgrade", role],
      isRepeatable: true,
      preparesNodes: true,
    },
  };
}
