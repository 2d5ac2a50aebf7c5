import { defineBackend } from "../contract.ts";
import { usualDistribution } from "./launch/distributions.ts";
import { cloudSchema, defaultInstanceType, parseCloudOptions } from "./options.ts";

/** Everything specific to `cluster-cloud`: regions, tags, instance types and so on. */
export const cloudKind = defineBackend({
  name: "cloud",
  summary: "Create and manage test clusters on cloud instances",
  options: cloudSchema,
  parse: async (given) => Promise.resolve(parseCloudOptions(given)),
  machineId: /^i-[0-9a-f]{8,17}$/,
  cloud: {
    admission:
      "Let this computer's public address, or the given addresses, reach the nodes over SSH and open the web UI. Only rules of the cluster's own security group are changed. The command needs no SSH key of the cluster, so run it before `import`.",
    allScopes: "List the clusters of every region that is enabled for the account",
  },
  open: async (work, { region }) => {
    const { createCloudBackend } = await import("./cloud-backend.ts");
    return createCloudBackend(work, { region });
  },
  doctor: {
    subject: "this computer and the account",
    checks: async (work, { region }) => {
      const { cloudChecks } = await import("./checks/checks.ts");
      const defaults = {
        region,
        distribution: usualDistribution,
        instanceType: defaultInstanceType,
      };
      return cloudChecks(work, defaults);
    },
  },
});
