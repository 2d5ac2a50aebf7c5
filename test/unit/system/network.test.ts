import { expect, test } from "bun:test";
import { networkFailure } from "../../../src/system/network.ts";

const handshake = "the TLS handshake failed";
const untrusted = "the server's certificate is not trusted";

test.each([
  ["ECONNREFUSED", "the connection was refused", true, false],
  ["ENOTFOUND", "the host name is unknown", false, false],
  ["EPROTO", handshake, false, true],
  ["ERR_SSL_WRONG_VERSION_NUMBER", handshake, false, true],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", untrusted, false, true],
  ["ERR_TLS_CERT_ALTNAME_INVALID", untrusted, false, true],
  ["EUNHEARD", "the request failed", true, false],
])("a request that fails with %s: %s", (code, reason, transient, isTls) => {
  const error = Object.assign(new Error("https://secret@host"), { code });
  expect(networkFailure(error)).toEqual({ code, reason, transient, isTls });
});

test("a request that takes too long has a code, too", () => {
  const error = new DOMException("late", "TimeoutError");
  expect(networkFailure(error)).toMatchObject({ code: "ETIMEDOUT", transient: true, isTls: false });
});
