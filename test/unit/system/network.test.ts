import { expect, test } from "bun:test";
import { mostBytes } from "../../../src/system/network.ts";
import { networkFailure } from "../../../src/system/network-failure.ts";

const handshake = "the TLS handshake failed";
const untrusted = "the server's certificate is not trusted";

test.each([
  ["ECONNREFUSED", "the connection was refused", true, false],
  ["ENOTFOUND", "the host name is unknown", false, false],
  // A proxy that refuses a host refuses it again.
  ["ERR_PROXY_TUNNEL", "the proxy did not forward the connection", false, false],
  ["EFBIG", "the answer is too long", false, false],
  ["EPROTO", handshake, false, true],
  ["ERR_SSL_WRONG_VERSION_NUMBER", handshake, false, true],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", untrusted, false, true],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "the server's certificate is for another host name",
    false,
    true,
  ],
  [
    "CERT_HAS_EXPIRED",
    "the server's certificate is not valid at this time, or this computer's clock is wrong",
    false,
    true,
  ],
  ["EUNHEARD", "the request failed", true, false],
])("a request that fails with %s: %s", (code, reason, transient, isTls) => {
  const error = Object.assign(new Error("https://secret@host"), { code });
  expect(networkFailure(error)).toEqual({ code, reason, transient, isTls });
});

test.each([
  "EAI_AGAIN",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "Malformed_HTTP_Response",
  "TooManyRedirects",
])("a request that fails with %s may succeed soon", (code) => {
  expect(networkFailure(Object.assign(new Error("x"), { code }))).toMatchObject({
    code,
    transient: true,
    isTls: false,
  });
});

test("a request that takes too long has a code, too", () => {
  const error = new DOMException("late", "TimeoutError");
  expect(networkFailure(error)).toMatchObject({ code: "ETIMEDOUT", transient: true, isTls: false });
});

test.each([
  ["artifact", 2e9],
  ["image", 50e9],
  ["clusterFile", 100e9],
] as const)(
  "a large %s of %d bytes may be downloaded, but not one that fills any disk",
  (file, bytes) => {
    expect(mostBytes[file]).toBeGreaterThan(bytes);
    expect(mostBytes[file]).toBeLessThan(1e12);
  },
);

test.each([
  [407, "ERR_PROXY_REFUSED", "the proxy requires a login", false],
  [403, "ERR_PROXY_REFUSED", "the proxy does not allow the connection (HTTP 403)", false],
  [502, "ERR_PROXY_TUNNEL", "the proxy did not forward the connection (HTTP 502)", false],
])(
  "a proxy that answers a request for a tunnel with %d is explained",
  (status, code, reason, transient) => {
    const error = Object.assign(new Error("Proxy refused to open a tunnel"), {
      code: "ERR_PROXY_TUNNEL",
      status,
    });
    expect(networkFailure(error)).toMatchObject({
      code,
      reason: expect.stringContaining(reason),
      transient,
    });
  },
);
