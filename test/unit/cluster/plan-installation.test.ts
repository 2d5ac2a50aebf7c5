import { expect, test } from "bun:test";
import { installationProblems } from "../../../src/cluster/plan-installation.ts";

const { signal } = new AbortController();

const missing = "/nowhere/license.txt";
const unreadable = (source: string): string => `${source}: cannot read the license file ${missing} (ENOENT).`;

test.each([
  [{ variant: "oss", securityMode: "strict" }, ["`securityMode`: only the enterprise variant has security modes"]],
  [{ variant: "oss", licenseKey: missing }, []],
  [{ variant: "enterprise", securityMode: "strict", extraConfig: { license_key_contents: "text" } }, []],
  [{ variant: "enterprise", licenseKey: missing }, [unreadable("`licenseKey`")]],
  [{ variant: "enterprise" }, [unreadable("CLUSTER_LICENSE_KEY_PATH")]],
  [
    { variant: "enterprise", extraConfig: { license_key_contents: 1 } },
    ["`extraConfig`: license_key_contents must be text."],
  ],
  [{ securityMode: "strict", licenseKey: missing }, []],
] as const)("the installation options %j have the problems %j", async (given, problems) => {
  expect(await installationProblems(given, { CLUSTER_LICENSE_KEY_PATH: missing }, signal)).toEqual([...problems]);
});
