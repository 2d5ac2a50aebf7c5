import { expect, test } from "bun:test";
import { readArtifactHead } from "../../../../src/platform/artifact/artifact-head.ts";
import { parseArtifactLocation } from "../../../../src/platform/artifact/artifact-request.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { artifactBytes, rangeAnswer, rawServer, webServer } from "./artifact-server.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

test.each([
  ["", null],
  ["me@", `Basic ${btoa("me:")}`],
  [":secret@", `Basic ${btoa(":secret")}`],
  ["a%40b:c%3Ad@", `Basic ${btoa("a@b:c:d")}`],
  ["a:100%@", `Basic ${btoa("a:100%")}`],
])("the user part %j of a URL is sent as %j", async (user, authorization) => {
  await using server = webServer((request) => rangeAnswer(request, artifactBytes(5000), {}));
  const location = parseArtifactLocation(server.origin.replace("//", `//${user}`), "/").value!;
  await readArtifactHead(location, { clock: systemClock, limitMs: 15_000 }, neverAborted);
  expect(server.requests.map((request) => request.headers.get("authorization"))).toEqual([
    authorization,
  ]);
});

test("a part without a Content-Range header is rejected, since its place is unknown", async () => {
  await using server = webServer(() => new Response(artifactBytes(4096), { status: 206 }));
  const location = parseArtifactLocation(server.origin, "/").value!;
  const reading = readArtifactHead(location, { clock: systemClock, limitMs: 15_000 }, neverAborted);
  expect(await failureOf(reading)).toMatchObject({
    id: "artifact-unreachable",
    message: expect.stringContaining("without a Content-Range header"),
  });
});

test("a part that begins elsewhere does not count as the file's beginning", async () => {
  const headers = { "content-range": "bytes 4096-8191/100000" };
  await using server = webServer(() => new Response(artifactBytes(4096), { status: 206, headers }));
  const location = parseArtifactLocation(server.origin, "/").value!;
  const reading = readArtifactHead(location, { clock: systemClock, limitMs: 15_000 }, neverAborted);
  expect(await failureOf(reading)).toMatchObject({
    id: "artifact-unreachable",
    message: expect.stringContaining("a different part than requested"),
  });
});

test.each([
  [
    "cannot be reached",
    undefined,
    /the proxy http:.*:1\/ \(http_proxy\) cannot be reached: the con/,
  ],
  [
    "asks for a login",
    407,
    /the proxy requires a login.*, through the proxy http:.* \(http_proxy\)/,
  ],
  ["answers itself", 403, /denies access \(HTTP 403\), through the proxy http:.* \(http_proxy\)/],
])("a proxy that %s is named", async (_, status, message) => {
  await using proxy = await rawServer(
    () => `HTTP/1.1 ${status ?? 200} -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
  );
  process.env["http_proxy"] = status === undefined ? "http://127.0.0.1:1" : proxy.origin;
  try {
    const location = parseArtifactLocation("http://files.example/a.sh", "/").value!;
    const reading = readArtifactHead(
      location,
      { clock: scriptedClock(), limitMs: 15_000 },
      neverAborted,
    );
    expect(await failureOf(reading)).toMatchObject({
      id: "artifact-unreachable",
      message: expect.stringMatching(message),
    });
  } finally {
    delete process.env["http_proxy"];
  }
});

test("between tries, a server that fails gets more and more time", async () => {
  const clock = scriptedClock();
  await using server = webServer(() => new Response("busy", { status: 503 }));
  const location = parseArtifactLocation(server.origin, "/").value!;
  const reading = readArtifactHead(location, { clock, limitMs: 15_000 }, neverAborted);
  expect((await failureOf(reading)).id).toBe("artifact-unreachable");
  expect(clock.pauses).toEqual([500, 1000, 1500]);
});
