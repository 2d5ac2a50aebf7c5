import { expect, test } from "bun:test";
import {
  licenseNeeded,
  parseArtifactVersion,
} from "../../../../src/platform/artifact/artifact-version.ts";

const firstRun = `Extracting image from this script and loading into docker daemon, this step can take a few minutes
dcos-genconf.9d1e6a-5a3bd7.tar
Loaded image: mesosphere/dcos-genconf:9d1e6a-5a3bd7
{
    "variant": "ee",
    "version": "1.13.0"
}
`;

test.each([
  ['{"variant": "oss", "version": "21.08"}\n', "oss", "21.08"],
  ['{"variant": "", "version": "1.11.0"}', "oss", "1.11.0"],
  ['{"variant": "none", "version": "3.5"}', "none", "3.5"],
  ['{"variant": "oss", "version": ""} {"variant": "ee", "version": "1.9"}', "enterprise", "1.9"],
  ['{"version": "2.0.0", "variant": "enterprise"}', "enterprise", "2.0.0"],
  [firstRun, "enterprise", "1.13.0"],
  ['warning: {odd} {"a": 1}\n{"variant": "ee", "version": "1.12"} trailing', "enterprise", "1.12"],
] as const)("%j is read", (stdout, variant, version) => {
  expect(parseArtifactVersion(stdout)).toEqual({ variant, version });
});

test.each([
  ["", 'The output of the artifact\'s --version contains neither a version nor a variant: ""'],
  [
    "usage: a.sh\n",
    'The output of the artifact\'s --version contains neither a version nor a variant: "usage: a.sh"',
  ],
  [
    '{"version": "1.0"}',
    'The output of the artifact\'s --version contains neither a version nor a variant: "{\\"version\\": \\"1.0\\"}"',
  ],
  ['{"variant": "pro", "version": "1.0"}', 'The artifact reports the unknown variant "pro".'],
])("%j is no version", (stdout, message) => {
  expect(() => parseArtifactVersion(stdout)).toThrow(
    expect.objectContaining({ id: "artifact-invalid", message }),
  );
});

// Shows R55.
test.each([
  ["1.10.11", false],
  ["1.9", false],
  ["1.11.0", true],
  ["1.11-dev", true],
  ["1.13.5", true],
  ["2.0.0", true],
  ["10.0", true],
  ["0.99", false],
  ["v1.12", true],
  ["master", false],
])("an enterprise artifact of version %s needs a license: %p", (version, needed) => {
  expect(licenseNeeded(version)).toBe(needed);
});
