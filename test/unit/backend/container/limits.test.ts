/** Limits travel whole: from options to labels, and from there to whatever is restored or copied. */
import { expect, test } from "bun:test";
import {
  limitOptions,
  limitWords,
  limitsOf,
  limitsText,
} from "../../../../src/backend/container/limits.ts";
import { readContainerOptions } from "../../../../src/backend/container/options.ts";
import {
  parseNodeSettings,
  settingsText,
} from "../../../../src/backend/container/records/labels.ts";

test("every limit comes back from the label, and becomes an argument of the engine", () => {
  const { options } = readContainerOptions({ memory: "2g", cpus: 1.5 });
  const { limits } = parseNodeSettings(settingsText(options))!;
  expect(limits).toEqual({ memory: "2g", cpus: "1.5" });
  expect(Object.values(limits)).toHaveLength(Object.keys(limitOptions).length);
  expect(limitWords(limits)).toEqual(["--memory=2g", "--cpus=1.5"]);
  expect(limitsText(limits, { after: ": ", none: "no limit" })).toBe("memory: 2g, CPUs: 1.5");
});

test("labels of earlier versions have the same form", () => {
  expect(parseNodeSettings('{"volumes":[],"memory":"1073741824"}')).toEqual({
    customVolumes: [],
    limits: limitsOf({ memory: "1073741824" }),
  });
  expect(parseNodeSettings('{"volumes":[],"memory":"1g --privileged"}')).toBeUndefined();
});
