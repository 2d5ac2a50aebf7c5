import { expect, test } from "bun:test";
import { unreachable } from "../../../../src/platform/artifact/artifact-request.ts";
import { answerFailure } from "../../../../src/system/files/download.ts";

const usual = "Check the URL, or download the file yourself and pass its path.";
const signed =
  "Check the user name or the token in the URL. If it is a signed URL that has expired, get a new one.";

test.each([
  [401, "the server requires a login (HTTP 401).", false, signed],
  [403, "the server denies access (HTTP 403).", false, signed],
  [404, "the server has no such file (HTTP 404).", false, "Check the URL."],
  [418, "the server answered (HTTP 418).", false, usual],
  [429, "the server answered (HTTP 429).", true, usual],
  [499, "the server answered (HTTP 499).", false, usual],
  [500, "the server failed (HTTP 500).", true, usual],
] as const)("the answer %d is reported with advice", (status, reason, transient, hint) => {
  const failure = unreachable("https://h.example/a?***", answerFailure(status));
  expect(failure).toMatchObject({ id: "artifact-unreachable", transient, hint });
  expect(failure.message).toBe(`Cannot read the artifact https://h.example/a?***: ${reason}`);
  expect(failure.facts).toEqual({ artifact: "https://h.example/a?***", status });
});
