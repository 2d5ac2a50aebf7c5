import { refusal } from "../../../../src/model/rule.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { imageProblem, readVmOptions, vmSchema } from "../../../../src/backend/vm/options.ts";
import { findSum } from "../../../../src/backend/vm/images/image-verification.ts";
import {
  cgroups1Distributions,
  chooseDistribution,
  cgroupVersionOf,
  defaultDistribution,
  distributions,
  publishedImage,
} from "../../../../src/backend/vm/images/images.ts";
import { readMegabytes } from "../../../../src/model/parse-values.ts";

test.each([
  ["2048", 2048],
  ["512m", 512],
  ["4g", 4096],
  ["1T", 1_048_576],
  ["0", undefined],
  ["2.5g", undefined],
  ["2k", undefined],
  ["", undefined],
])("the size %p is %p megabytes", (given, megabytes) => {
  expect(readMegabytes(given)).toBe(megabytes);
});

test("sizes that machines can't have are refused with an example", () => {
  const { memory, diskSize, cpus } = vmSchema;
  expect(memory.read("100")).toBeUndefined();
  expect(unmarked(refusal(memory, "100"))).toBe(
    '"100" is not a size of at least 256 MB, such as 2048 or 4g',
  );
  expect(memory.read("256")).toBe(256);
  expect(diskSize.read("20")).toBeUndefined();
  expect(diskSize.read("20g")).toBe(20_480);
  expect(diskSize.read("2048t")).toBe(2048 * 1024 ** 2);
  for (const given of ["2049t", "10000t", "99999999g"])
    expect(diskSize.read(given)).toBeUndefined();
  expect(cpus.read("1.5")).toBeUndefined();
  expect(cpus.read("255")).toBe(255);
  expect(cpus.read("256")).toBeUndefined();
  expect(cpus.read("4")).toBe(4);
});

test("an image from the web needs its sum, and a sum an image", () => {
  const sum = "a".repeat(64);
  expect(unmarked(imageProblem("https://example.com/disk.img", undefined) ?? "")).toBe(
    "`image`: a URL requires `imageSha256`",
  );
  expect(imageProblem("https://example.com/disk.img", sum)).toBeUndefined();
  expect(imageProblem("/disk.img", undefined)).toBeUndefined();
  expect(unmarked(imageProblem(undefined, sum) ?? "")).toBe(
    "`imageSha256` is only allowed with `image`",
  );
});

test("the library tells everything that is wrong at once", () => {
  const read = () =>
    readVmOptions({ linuxDistribution: "beos-5", memory: "1k", image: "disk.img" });
  expect(read).toThrow(
    /^`memory`: "1k".*; `image`: "disk.img" is not an absolute path; `linuxDistribution`: "beos-5" is not one/,
  );
  expect(() => readVmOptions({ image: "" })).toThrow('`image`: "" is not an absolute path');
  // @ts-expect-error Not all who use the library have its types.
  expect(() => readVmOptions({ accelerator: "xen" })).toThrow(
    '`accelerator`: "xen" is not one of kvm, hvf, tcg',
  );
  expect(readVmOptions({ accelerator: "tcg" }).options).toMatchObject({ accelerator: "tcg" });
  expect(() => readVmOptions({ cpuModel: "Nehalem,-vmx" })).toThrow(
    "is not a CPU model of QEMU such as Nehalem",
  );
  expect(readVmOptions({ cpuModel: "Haswell-noTSX.v1" }).options).toMatchObject({
    cpuModel: "Haswell-noTSX.v1",
  });
  expect(readVmOptions({}).values.linuxDistribution).toBe("by-artifact");
  expect(readVmOptions({}).options).toStrictEqual({
    memoryMegabytes: 2048,
    cpus: 2,
    diskMegabytes: 20_480,
    templates: { mostMegabytes: 10_240 },
  });
  const image = { image: "/dev/null", imageSha256: "a".repeat(64) };
  expect(readVmOptions({ memory: "1g", cpus: 4, diskSize: "30g", ...image }).options).toMatchObject(
    {
      memoryMegabytes: 1024,
      cpus: 4,
      diskMegabytes: 30_720,
      image: { source: "/dev/null", sha256: image.imageSha256 },
    },
  );
  expect(readVmOptions({ freshBoot: true }).options).not.toHaveProperty("templates");
  expect(readVmOptions({ templateSpace: "3g" }).options.templates).toEqual({ mostMegabytes: 3072 });
});

test.each([
  ["x64", /amd64|x86_64/],
  ["arm64", /arm64|aarch64/],
])(
  "every distribution's image for %s and its sums lie in one folder of its publisher, behind TLS",
  (name, own) => {
    for (const distribution of distributions) {
      const { url, sumsUrl } = publishedImage(distribution, architectureOf(name));
      expect(url).toMatch(own);
      expect(new URL(".", sumsUrl).href).toBe(new URL(".", url).href);
      expect(url).toStartWith("https://");
      expect(url).toContain(distribution.split("-")[1]!);
    }
  },
);

const short = "0123456789abcdef".repeat(4);
const long = short.repeat(2);

test.each([
  [
    "as sha256sum writes it",
    `${"f".repeat(64)}  other.img\n${short}  disk.img\n`,
    { algorithm: "sha256", hex: short },
  ],
  [
    "of a binary file, in capitals",
    `${long.toUpperCase()} *disk.img`,
    { algorithm: "sha512", hex: long },
  ],
  [
    "as BSD writes it",
    `# disk.img: 5 bytes\nSHA256 (disk.img) = ${short}\n`,
    { algorithm: "sha256", hex: short },
  ],
  ["of another file", `${short}  disk.img.xz\n`, undefined],
  ["of another length", `${short.slice(1)}  disk.img\n`, undefined],
])("a sum %s", (_, list, sum) => {
  expect(findSum(list, "disk.img")).toEqual(sum as ReturnType<typeof findSum>);
});

test.each([
  [short, false],
  [short.toUpperCase(), false],
  [long, true],
  [short.slice(1), true],
  [`${short.slice(1)}g`, true],
  ["", true],
])("the checksum %p is a problem: %p", (given, isProblem) => {
  const expected = isProblem ? undefined : given.toLowerCase();
  expect(vmSchema.imageSha256.read(given)).toBe(expected);
});

test("where no distribution is named, it is one whose control groups suit the platform", () => {
  expect(chooseDistribution(defaultDistribution, undefined, false)).toBe("debian-12");
  expect(cgroups1Distributions).toContain(chooseDistribution(defaultDistribution, undefined, true));
  expect(chooseDistribution(defaultDistribution, "almalinux-9", false)).toBe("almalinux-9");
  expect(chooseDistribution("rocky-9", "debian-12", true)).toBe("rocky-9");
  for (const distribution of distributions) expect(cgroupVersionOf(distribution)).toBeNumber();
});
