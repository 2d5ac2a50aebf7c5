/** Which images boot on which instance types. */
import { expect, test } from "bun:test";
import type { InstanceTypeInfo } from "@aws-sdk/client-ec2";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import {
  type ImageTraits,
  assertFits,
  describeInstanceType,
} from "../../../../../src/backend/cloud/launch/instance-types.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";
import { refusal } from "../../../../support/scripted-cloud.ts";

const type: InstanceTypeInfo = {
  InstanceType: "m5.large",
  ProcessorInfo: { SupportedArchitectures: ["x86_64"] },
  SupportedVirtualizationTypes: ["hvm"],
  SupportedRootDeviceTypes: ["ebs"],
  SupportedBootModes: ["legacy-bios", "uefi"],
  NetworkInfo: { EnaSupport: "required" },
  NitroTpmSupport: "unsupported",
};
const traits: ImageTraits = {
  Architecture: "x86_64",
  VirtualizationType: "hvm",
  RootDeviceType: "ebs",
  EnaSupport: true,
};
const check = (image: ImageTraits, changes: Partial<InstanceTypeInfo> = {}) =>
  assertFits(
    { id: "ami-1", name: "mine", traits: { ...traits, ...image } },
    { ...type, ...changes },
  );

test.each<[string, ImageTraits, Partial<InstanceTypeInfo>]>([
  ["the usual image", {}, {}],
  [
    "an image that prefers UEFI",
    { BootMode: "uefi-preferred" },
    { SupportedBootModes: ["legacy-bios"] },
  ],
  [
    "an image without a driver for a type that needs none",
    { EnaSupport: false },
    { NetworkInfo: { EnaSupport: "supported" } },
  ],
  [
    "an image for a type about which nothing is said",
    {},
    { ProcessorInfo: {}, SupportedRootDeviceTypes: [] },
  ],
])("%s fits", (_, image, changes) => {
  expect(() => check(image, changes)).not.toThrow();
});

const askForTypes = async (call: () => Promise<object>) => {
  const { progress, told } = recordingProgress();
  const api = { region: "us-west-2", call } as unknown as CloudApi;
  return {
    found: await describeInstanceType({ progress, signal: neverAborted }, api, "m5.large"),
    told,
  };
};

test("a type that the region lacks is refused", async () => {
  expect(await failureOf(askForTypes(async () => ({ InstanceTypes: [] })))).toMatchObject({
    id: "bad-usage",
    message: "`instanceType`: region us-west-2 does not offer m5.large.",
  });
});

test("if the account may not ask for types, the launch decides", async () => {
  const { found, told } = await askForTypes(async () =>
    Promise.reject(refusal("UnauthorizedOperation")),
  );
  expect([found, told]).toEqual([
    undefined,
    [expect.stringContaining("Not checked whether the image fits m5.large")],
  ]);
});

test("a type about which the account may not ask is left to the launch", () => {
  expect(() => assertFits({ id: "ami-1", name: "mine", traits }, undefined)).not.toThrow();
});

test.each<[string, ImageTraits, Partial<InstanceTypeInfo>]>([
  ["needs processors of arm64, but m5.large has x86_64", { Architecture: "arm64" }, {}],
  [
    "needs processors of x86_64, but m5.large has x86_64_mac",
    {},
    { ProcessorInfo: { SupportedArchitectures: ["x86_64_mac"] } },
  ],
  [
    "needs virtualization of type paravirtual, but m5.large has hvm",
    { VirtualizationType: "paravirtual" },
    {},
  ],
  [
    "needs a root device of type instance-store, but m5.large has ebs",
    { RootDeviceType: "instance-store" },
    {},
  ],
  [
    "needs boot mode uefi, but m5.large has legacy-bios",
    { BootMode: "uefi" },
    { SupportedBootModes: ["legacy-bios"] },
  ],
  [
    "has no driver for Elastic Network Adapters, but m5.large requires one",
    { EnaSupport: false },
    {},
  ],
  ["needs a TPM, but m5.large has none", { TpmSupport: "v2.0" }, {}],
])("an image %s", (text, image, changes) => {
  expect(() => check(image, changes)).toThrow(`\`instanceType\`: image ami-1 (mine) ${text}.`);
});
