/** Which images boot on which instance types. */
import { expect, test } from "bun:test";
import type { InstanceTypeInfo } from "@aws-sdk/client-ec2";
import { type ImageTraits, assertFits } from "../../../../../src/backend/cloud/launch/instance-types.ts";

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
  assertFits({ id: "ami-1", name: "mine", traits: { ...traits, ...image } }, { ...type, ...changes });

test.each<[string, ImageTraits, Partial<InstanceTypeInfo>]>([
  ["the usual image", {}, {}],
  ["an image that prefers UEFI", { BootMode: "uefi-preferred" }, { SupportedBootModes: ["legacy-bios"] }],
  [
    "an image without a driver for a type that needs none",
    { EnaSupport: false },
    { NetworkInfo: { EnaSupport: "supported" } },
  ],
  ["an image for a type about which nothing is said", {}, { ProcessorInfo: {}, SupportedRootDeviceTypes: [] }],
])("%s fits", (_, image, changes) => {
  expect(() => check(image, changes)).not.toThrow();
});

test("a type that the region doesn't know is left to another check", () => {
  expect(() => assertFits({ id: "ami-1", name: "mine", traits }, undefined)).not.toThrow();
});

test.each<[string, ImageTraits, Partial<InstanceTypeInfo>]>([
  ["needs processors of arm64, but m5.large has x86_64", { Architecture: "arm64" }, {}],
  [
    "needs processors of x86_64, but m5.large has x86_64_mac",
    {},
    { ProcessorInfo: { SupportedArchitectures: ["x86_64_mac"] } },
  ],
  ["needs virtualization of type paravirtual, but m5.large has hvm", { VirtualizationType: "paravirtual" }, {}],
  ["needs a root device of type instance-store, but m5.large has ebs", { RootDeviceType: "instance-store" }, {}],
  ["needs boot mode uefi, but m5.large has legacy-bios", { BootMode: "uefi" }, { SupportedBootModes: ["legacy-bios"] }],
  ["has no driver for Elastic Network Adapters, but m5.large requires one", { EnaSupport: false }, {}],
  ["needs a TPM, but m5.large has none", { TpmSupport: "v2.0" }, {}],
])("an image %s", (text, image, changes) => {
  expect(() => check(image, changes)).toThrow(`\`instanceType\`: image ami-1 (mine) ${text}.`);
});
