import { defaultDistribution, distributions, selinuxProblem } from "../backend/cloud/launch/distributions.ts";
import { cloudOptions, cloudPlaceSchema, cloudSchema, defaultInstanceType } from "../backend/cloud/options.ts";
import { flag } from "../cli/options/option.ts";
import { backendOptions } from "../commands/backend-options.ts";
import { defineDriver } from "../commands/driver.ts";

/** Everything specific to `cluster-cloud`: regions, tags, instance types and so on. */
export const cloudDriver = defineDriver({
  program: "cluster-cloud",
  summary: "Create and manage test clusters on cloud instances",
  distributions,
  defaultDistribution,
  hasLifetime: true,
  canHandOver: true,
  snapshots: undefined,
  doctorSubject: "this machine and the account",
  selinuxProblem,
  machineId: /^i-[0-9a-f]{8,17}$/,
  placeOptions: backendOptions(cloudPlaceSchema, { region: "--cloud-region" }),
  everywhere: flag({
    flag: "--all-regions",
    summary: "List the clusters of every region that is enabled for the account",
  }),
  creationOptions: backendOptions(cloudSchema, {
    customTags: "--custom-tag",
    adminCidrs: "--admin-cidr",
    subnetId: "--subnet",
  }),
  checkCreation: async (given, problems) => {
    const { cloudProblems } = await import("../backend/cloud/cloud-problems.ts");
    for (const problem of cloudProblems(given)) problems.add(problem);
  },
  open: async ({ region }, runtime, signal) => {
    const { createCloudBackend } = await import("../backend/cloud/cloud-backend.ts");
    return createCloudBackend({ region }, runtime, signal);
  },
  creation: cloudOptions,
  doctorChecks: async ({ region }, runtime, signal) => {
    const { cloudChecks } = await import("../backend/cloud/checks/checks.ts");
    const defaults = { region, distribution: defaultDistribution, instanceType: defaultInstanceType };
    return cloudChecks(defaults, runtime, signal);
  },
});
