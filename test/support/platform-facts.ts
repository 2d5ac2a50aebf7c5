import type { PlatformFacts } from "../../src/platform/folder/platform-file.ts";

/** What a platform.yaml says that has a name and a version only. */
export const leastFacts: PlatformFacts = {
  name: "meter",
  version: "1.0",
  description: undefined,
  nodes: { master: {}, agent: {}, public_agent: {} },
  packages: { apt: [], dnf: [] },
  ports: [],
  web: undefined,
  checkSeconds: undefined,
  conditions: [],
  kernelModules: [],
  logs: { units: [], files: [], errors: [], allowed: [] },
  secrets: [],
};
