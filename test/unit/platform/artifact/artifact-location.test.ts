import { expect, test } from "bun:test";
import {
  locateArtifact,
  parseArtifactLocation,
} from "../../../../src/platform/artifact/artifact-request.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const cwd = "/home/me";

test.each([
  [
    "https://host.example/a.sh",
    { kind: "url", url: "https://host.example/a.sh", shown: "https://host.example/a.sh" },
  ],
  [
    "HTTP://Host.example/a.sh?t=1",
    { kind: "url", url: "http://host.example/a.sh?t=1", shown: "http://host.example/a.sh?***" },
  ],
  [
    "https://u:p@host.example/a.sh",
    { kind: "url", url: "https://u:p@host.example/a.sh", shown: "https://***@host.example/a.sh" },
  ],
  [
    "file:///srv/my%20artifact.sh",
    { kind: "file", path: "/srv/my artifact.sh", shown: "/srv/my artifact.sh" },
  ],
  ["file://localhost/srv/a.sh", { kind: "file", path: "/srv/a.sh", shown: "/srv/a.sh" }],
  ["a.sh", { kind: "file", path: "/home/me/a.sh", shown: "/home/me/a.sh" }],
  ["../a.sh", { kind: "file", path: "/home/a.sh", shown: "/home/a.sh" }],
  ["/srv/a?b.sh", { kind: "file", path: "/srv/a?b.sh", shown: "/srv/a?b.sh" }],
  ["C:a.sh", { kind: "file", path: "/home/me/C:a.sh", shown: "/home/me/C:a.sh" }],
] as const)("%s is read", (text, location) => {
  expect(parseArtifactLocation(text, cwd)).toEqual({ value: location });
});

test.each([
  ["", "the value is empty"],
  ["  ", "the value is empty"],
  [
    "ftp://u:hunter2@host.example/a?hunter2",
    "ftp://***@host.example/a?***: ftp:// is not supported; use https://, http://, file:// or a path.",
  ],
  [
    "s3://bucket/key",
    "s3://bucket/key: s3:// is not supported; use https://, http://, file:// or a path.",
  ],
  ["https://u:hunter2@/a?hunter2", "https://***@/a?*** is not a valid URL."],
  ["https://", "https:// is not a valid URL."],
  ["http://host:99999/a", "http://host:99999/a is not a valid URL."],
  [
    "file://elsewhere.example/a",
    "file://elsewhere.example/a is not a file on this computer: use file:///absolute/path.",
  ],
])("%p is refused", (text, problem) => {
  expect(parseArtifactLocation(text, cwd)).toEqual({ problems: [problem] });
});

test("the bare name of an example is answered with how to write it", async () => {
  expect(await locateArtifact("slurm", "/nonexistent/folder", neverAborted)).toEqual({
    problems: ["there is no such folder or file; did you mean example:slurm?"],
  });
});
