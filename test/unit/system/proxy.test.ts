/** Which proxy a request goes through. */
import { expect, test } from "bun:test";
import { proxyOf } from "../../../src/system/proxy.ts";
import { unmarked } from "../../../src/outside-text.ts";

const url = new URL("https://ec2.us-west-2.amazonaws.com");
const proxy = { HTTPS_PROXY: "http://me:secret@proxy.test:3128" };

test.each([
  [proxy, "http://***@proxy.test:3128/ (HTTPS_PROXY)"],
  [{ https_proxy: "http://a.test", HTTPS_PROXY: "http://b.test" }, "http://a.test/ (https_proxy)"],
  [{ https_proxy: "", HTTPS_PROXY: "" }, undefined],
  [{ HTTP_PROXY: "http://a.test" }, undefined],
  [{ ...proxy, NO_PROXY: "" }, "http://***@proxy.test:3128/ (HTTPS_PROXY)"],
  [{ ...proxy, NO_PROXY: "*" }, undefined],
  [{ ...proxy, NO_PROXY: "localhost, .amazonaws.com" }, undefined],
  [{ ...proxy, no_proxy: "us-west-2.amazonaws.com" }, undefined],
  [{ ...proxy, no_proxy: "west-2.amazonaws.com" }, "http://***@proxy.test:3128/ (HTTPS_PROXY)"],
])("with %j: %j", (environment, expected) => {
  const found = proxyOf(url, environment);
  expect(found && unmarked(found)).toBe(expected);
});
