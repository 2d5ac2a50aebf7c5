import { defaultInstanceType } from "../backend/cloud/cloud-options.ts";
import { tagProblem } from "../backend/cloud/launch/tag-problem.ts";
import { defaultDistribution, distributions } from "../backend/cloud/launch/distributions.ts";
import { BadValue, flag, option } from "../cli/option.ts";
import { quoted, value } from "../cli/value-types.ts";
import { defineDriver } from "../commands/driver.ts";
import { parseRegion, parseUserName } from "../model/parse-values.ts";

const defaultRegion = "us-west-2";

/** What only `cluster-cloud` has: regions, tags, instance types and the like. */
export const cloudDriver = defineDriver({
  program: "cluster-cloud",
  summary: "Creates and manages test clusters on cloud instances",
  distributions,
  defaultDistribution,
  hasLifetime: true,
  canDestroy: false,
  doctorSubject: "this machine and the account",
  // Amazon Linux 2 comes with it switched off: a mode that no running system can change.
  selinuxProblem: (distribution) =>
    /^(?:centos|rhel|rocky|almalinux)-|^amazon-2023$/.test(distribution)
      ? undefined
      : `${distribution} comes without SELinux`,
  machineId: /^i-[0-9a-f]{8,17}$/,
  placeOptions: {
    cloudRegion: option(value(parsed(parseRegion, "is no region, such as us-west-2")), {
      flag: "--cloud-region",
      summary: "The cloud region",
      default: defaultRegion,
    }),
  },
  everywhere: flag({ flag: "--all-regions", summary: "Ask every region that is enabled for the account" }),
  creationOptions: {
    customTag: option(value(customTag), {
      flag: "--custom-tag",
      placeholder: "<TAG_KEY>:<TAG_VALUE>",
      summary: "Tag for the instances and volumes",
      repeatable: true,
    }),
    instanceType: option(value(matching(/^[a-z0-9-]+\.[a-z0-9-]+$/, "is no instance type, such as m5.large")), {
      flag: "--instance-type",
      summary: "Type of the instances",
      default: defaultInstanceType,
    }),
    adminCidr: option(value(cidr), {
      flag: "--admin-cidr",
      summary: "Address range that may reach the nodes over SSH and the web UI",
      defaultText: "the address this machine is seen from",
      repeatable: true,
    }),
    subnet: option(value(matching(/^subnet-[0-9a-f]{8,17}$/, "is no subnet id, such as subnet-0123456789abcdef0")), {
      flag: "--subnet",
      summary: "Subnet for the nodes",
      defaultText: "one of the default network",
    }),
    image: option(value(matching(/^ami-[0-9a-f]{8,17}$/, "is no image id, such as ami-0123456789abcdef0")), {
      flag: "--image",
      summary: "Image of your own for the nodes; needs --ssh-user",
    }),
    sshUser: option(value(parsed(parseUserName, "is no user's name, such as ec2-user")), {
      flag: "--ssh-user",
      summary: "The user that --image lets in over SSH",
    }),
  },
  checkCreation: (given, problems) => {
    const tags = given.customTag ?? [];
    tags.forEach(({ key, value: tagValue }, index) => {
      const problem = tagProblem(key, tagValue, tags.slice(0, index));
      if (problem !== undefined) problems.add(`--custom-tag: ${problem}`);
    });
    if ((given.image === undefined) !== (given.sshUser === undefined))
      problems.add("--image and --ssh-user: give both or neither");
  },
  open: async ({ cloudRegion }, surroundings, signal) => {
    const { createCloudBackend } = await import("../backend/cloud/cloud-backend.ts");
    return createCloudBackend({ region: cloudRegion }, surroundings, signal);
  },
  creation: (values) => ({
    instanceType: values.instanceType,
    customTags: values.customTag,
    adminCidrs: values.adminCidr,
    ...(values.subnet !== undefined && { subnetId: values.subnet }),
    ...(values.image !== undefined && { image: { id: values.image, user: values.sshUser ?? "" } }),
  }),
  doctorChecks: async ({ cloudRegion }, surroundings, signal) => {
    const { cloudChecks } = await import("../backend/cloud/checks.ts");
    const defaults = { region: cloudRegion, distribution: defaultDistribution, instanceType: defaultInstanceType };
    return cloudChecks(defaults, surroundings, signal);
  },
});

function matching(pattern: RegExp, problem: string): (given: string) => string {
  return parsed((given) => (pattern.test(given) ? given : undefined), problem);
}

function parsed(parse: (given: string) => string | undefined, problem: string): (given: string) => string {
  return (given) => {
    const found = parse(given);
    if (found === undefined) throw new BadValue(`${quoted(given)} ${problem}`);
    return found;
  };
}

function customTag(given: string): { readonly key: string; readonly value: string } {
  const colon = given.indexOf(":");
  if (colon < 1) throw new BadValue(`${quoted(given)} is no <TAG_KEY>:<TAG_VALUE>`);
  return { key: given.slice(0, colon), value: given.slice(colon + 1) };
}

async function cidr(given: string): Promise<string> {
  const { cidrProblem } = await import("../backend/cloud/launch/admin-cidrs.ts");
  const problem = cidrProblem(given);
  if (problem !== undefined) throw new BadValue(problem);
  return given;
}
