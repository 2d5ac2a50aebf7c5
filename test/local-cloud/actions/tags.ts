import type { Behaviour } from "../behaviour.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { Tags } from "../endpoint/filters.ts";
import type { ParameterDeclaration, Parameters } from "../endpoint/parameters.ts";
import type { XmlValue } from "../endpoint/xml.ts";
import type { Region } from "../state/region.ts";
import type { Action } from "./action.ts";

export const tagSpecificationParameters: ParameterDeclaration = {
  "TagSpecification.N.ResourceType": "text",
  "TagSpecification.N.Tag.N.Key": "text",
  "TagSpecification.N.Tag.N.Value": "text",
};

const maximumTags = 50;

export const createTags: Action = {
  name: "CreateTags",
  parameters: {
    "ResourceId.N": "text",
    "Tag.N.Key": "text",
    "Tag.N.Value": "text",
    DryRun: "boolean",
  },
  required: ["ResourceId"],
  run: ({ parameters, region, passDryRun }) => {
    const targets = parameters.texts("ResourceId").map((id) => tagsOfResource(region, id));
    const tags = readTags(parameters);
    passDryRun();
    for (const target of targets) for (const [key, value] of tags) target.set(key, value);
    return { return: true };
  },
};

/** Deletes the keys that are given; with a value, only if the tag has it. Without any, all tags of the caller. */
export const deleteTags: Action = {
  ...createTags,
  name: "DeleteTags",
  run: ({ parameters, region, passDryRun }) => {
    const targets = parameters.texts("ResourceId").map((id) => tagsOfResource(region, id));
    const given = parameters.list("Tag");
    passDryRun();
    for (const target of targets) {
      if (given.length === 0) target.clear();
      for (const tag of given) {
        const [key, value] = [tag.requiredText("Key"), tag.text("Value")];
        if (value === undefined || target.get(key) === value) target.delete(key);
      }
    }
    return { return: true };
  },
};

/** Returns the tags that a request sets on new resources, by resource type. Rejects types that are not `known`. */
export function readTagSpecifications(
  parameters: Parameters,
  known: readonly string[],
): ReadonlyMap<string, Tags> {
  const result = new Map<string, Tags>();
  for (const specification of parameters.list("TagSpecification")) {
    const type = specification.requiredText("ResourceType");
    if (!known.includes(type))
      throw invalid(`'${type}' is not a valid taggable resource type for this operation.`);
    if (result.has(type)) throw invalid(`Tag specifications for '${type}' are given twice.`);
    result.set(type, readTags(specification));
  }
  return result;
}

/** Throws EC2's error if a policy of the organization doesn't allow the tags of new resources. */
export function checkTagPolicy(tags: Tags, { tagPolicy }: Pick<Behaviour, "tagPolicy">): void {
  for (const [key, value] of tags)
    if (tagPolicy[key]?.includes(value) === false)
      throw new Ec2Error(
        "TagPolicyViolation",
        `The tag policy does not allow the specified value for the following tag key: '${key}'.`,
      );
}

export function tagsXml(tags: Tags): XmlValue {
  return tags.size === 0 ? undefined : [...tags].map(([key, value]) => ({ key, value }));
}

function readTags(parameters: Parameters): Tags {
  const tags = new Map<string, string>();
  for (const tag of parameters.list("Tag")) {
    const key = tag.requiredText("Key");
    const value = tag.text("Value") ?? "";
    checkTag(key, value);
    if (tags.has(key)) throw invalid(`Duplicate tag key '${key}' specified.`);
    tags.set(key, value);
  }
  if (tags.size > maximumTags)
    throw new Ec2Error(
      "TagLimitExceeded",
      "The maximum number of Tags for a resource has been reached.",
    );
  return tags;
}

function checkTag(key: string, value: string): void {
  if (/^aws:/i.test(key))
    throw invalid(`Tag keys starting with 'aws:' are reserved for internal use`);
  if (key.length > 128)
    throw invalid(`Tag key exceeds the maximum length of 128 characters: '${key}'`);
  if (value.length > 256)
    throw invalid(`Tag value exceeds the maximum length of 256 characters: '${value}'`);
}

function tagsOfResource(region: Region, id: string): Map<string, string> {
  if (id.startsWith("sg-")) return region.group(id).tags;
  const instance = region.instances.get(id);
  if (instance !== undefined && instance.visibleAt <= Date.now()) return instance.tags;
  for (const { volumeTags } of region.instances.values()) {
    const tags = volumeTags.get(id);
    if (tags !== undefined) return tags;
  }
  throw new Ec2Error("InvalidID", `The ID '${id}' is not valid`);
}

function invalid(message: string): Ec2Error {
  return new Ec2Error("InvalidParameterValue", message);
}
