import { expect, test } from "bun:test";
import {
  chooseDistribution,
  defaultDistribution,
  selinuxProblem,
  sources,
} from "../../../../../src/backend/cloud/launch/distributions.ts";

test("only images of version 7, whose cloud-init is too old, get version 1 of the instance metadata", () => {
  const unaware = Object.entries(sources).filter(([, { needsMetadata1 }]) => needsMetadata1);
  expect(unaware.map(([name]) => name)).toEqual(["centos-7", "rhel-7"]);
});

test("the nearest distributions of each are others that are known", () => {
  for (const [name, { nearest }] of Object.entries(sources))
    for (const other of nearest) {
      expect(Object.keys(sources)).toContain(other);
      expect(other).not.toBe(name);
    }
});

test.each([
  [defaultDistribution, undefined],
  ["image ami-0123456789abcdef0", undefined],
  ["rocky-9", undefined],
  ["amazon-2023", undefined],
  ["amazon-2", "amazon-2 comes without SELinux"],
  ["debian-12", "debian-12 comes without SELinux"],
])("SELinux on %p: %p", (distribution, problem) => {
  expect(selinuxProblem(distribution)).toBe(problem);
});

test("where no distribution is named, it is Debian for a folder", () => {
  expect(chooseDistribution(defaultDistribution, undefined)).toBe("centos-7");
  expect(chooseDistribution(defaultDistribution, "debian-12")).toBe("debian-12");
  expect(chooseDistribution("rocky-9", "debian-12")).toBe("rocky-9");
});
