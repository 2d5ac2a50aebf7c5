import { expect, test } from "bun:test";
import {
  type WebEndpoint,
  webEndpointOf,
  webPortsOf,
  webUiText,
} from "../../../src/model/cluster-record.ts";
import { parseWebUi } from "../../../src/model/parse-values.ts";
import { hostileTexts } from "../../support/hostile-text.ts";

test.each([
  [{ scheme: "http", port: 80, path: "/" }, "http", { http: 80, https: 443 }],
  [{ scheme: "https", port: 443, path: "/" }, "https", { http: 80, https: 443 }],
  [{ scheme: "http", port: 8080, path: "/" }, "http:8080/", { http: 8080, https: 443 }],
  [
    { scheme: "http", port: 80, path: "/ui/~me.html" },
    "http:80/ui/~me.html",
    { http: 80, https: 443 },
  ],
  [{ scheme: "https", port: 80, path: "/" }, "https:80/", { http: 80, https: 80 }],
] as const)(
  "the web UI at %j is stored as %p, and read back",
  (place: WebEndpoint, text, ports) => {
    expect(webUiText(place)).toBe(text);
    expect(parseWebUi(text)).toBe(text);
    expect(webEndpointOf(text)).toEqual(place);
    expect(webPortsOf(text)).toEqual(ports);
  },
);

test("a platform without a web UI, or one of which nothing is known, has the usual ports", () => {
  expect(webEndpointOf("none")).toBeUndefined();
  for (const webUi of ["none", undefined] as const)
    expect(webPortsOf(webUi)).toEqual({ http: 80, https: 443 });
});

test.each([
  "",
  "ftp",
  "http:",
  "http:80",
  "http:80//example.org/",
  "http:0/",
  "http:080/",
  "https:123456/",
  "http:80/ x",
  "none:80/",
  "HTTP",
])("%j is no web UI", (text) => {
  expect(parseWebUi(text)).toBeUndefined();
});

test("no text becomes a web UI that is unsafe in a tag, a line or on a terminal", () => {
  for (const text of hostileTexts(20_260_102, 20_000)) {
    const webUi = parseWebUi(text);
    if (webUi === undefined) continue;
    expect(webUi).toMatch(/^[A-Za-z0-9:._~%/-]{4,216}$/);
  }
});
