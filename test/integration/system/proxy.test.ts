/** Messages name the proxy that a request went through. The runtime chooses it, so its rules count. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { proxyOf } from "../../../src/system/proxy.ts";

type Case = readonly [url: string, variables: Readonly<Record<string, string>>];

/** Nothing listens there: a request that isn't for the proxy fails. */
const [local, local6] = ["http://127.0.0.1:1/", "http://[::1]:1/"];

const without = (url: string, ...exceptions: readonly string[]): readonly Case[] =>
  exceptions.map((NO_PROXY) => [url, { HTTP_PROXY: "", ALL_PROXY: "PROXY", NO_PROXY }]);

const cases: readonly Case[] = [
  [local, { all_proxy: "PROXY" }],
  [local, { ALL_PROXY: "PROXY" }],
  [local, { HTTPS_PROXY: "PROXY" }],
  [local, { HTTP_PROXY: "PROXY", ALL_PROXY: "http://127.0.0.1:1" }],
  [local, { HTTP_PROXY: "http://127.0.0.1:1", ALL_PROXY: "PROXY" }],
  [local, { HTTP_PROXY: "PROXY", no_proxy: "", NO_PROXY: "127.0.0.1" }],
  [local, { HTTP_PROXY: "PROXY", no_proxy: "x", NO_PROXY: "127.0.0.1" }],
  ...without(local, "127.0.0.1", "127.0.0.1/32", "127.0.0.0/8", "10.0.0.0/8", "127.0.0.0/99"),
  ...without(local, "127.0.0", "127.*", ".0.0.1", "0.0.1", "127.0.0.1:1", "127.0.0.1:2"),
  ...without(local, "a 127.0.0.1", "a\t127.0.0.1", "a;127.0.0.1", " 127.0.0.1 ", "a, *", "/8", ""),
  ...without(local6, "::1", "[::1]", "[::1]:1", "[::1]:2", "::1/128", "::1/129", "127.0.0.0/8"),
  ...["http://ec2.invalid:1/", "http://a.ec2.invalid:1/", "http://notec2.invalid:1/"].flatMap(
    (url) => [
      ...without(url, "ec2.invalid", ".ec2.invalid", "*.ec2.invalid", "*ec2.invalid", "invalid"),
      ...without(
        url,
        "EC2.INVALID",
        "ec2.invalid.",
        "ec2.invalid:1",
        "ec2.invalid:2",
        "c2.invalid",
      ),
    ],
  ),
  ...without("http://ec2.invalid/", "ec2.invalid:80", "ec2.invalid:443"),
];

test("the proxy of a request is the one that the runtime sends it through", async () => {
  using proxy = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data: (socket) =>
        void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nfrom the proxy"),
    },
  });
  const address = `http://127.0.0.1:${proxy.port}`;
  const given = cases.map(([url, variables]): Case => {
    const values = Object.entries(variables).map(([name, value]) => [
      name,
      value.replace("PROXY", address),
    ]);
    return [url, Object.fromEntries(values)];
  });
  const program = Bun.spawn([process.execPath, join(import.meta.dir, "proxy-program.ts")], {
    env: {},
    stdin: Buffer.from(JSON.stringify(given)),
    stdout: "pipe",
  });
  const answered = (await new Response(program.stdout).text()).trim().split("\n");
  const found = given.map(([url, variables]) => {
    const proxyUrl = proxyOf(new URL(url), variables);
    return String(proxyUrl?.includes(address) ?? false);
  });
  const shown = (results: readonly string[]) =>
    given.map(
      ([url, variables], index) => `${url} ${JSON.stringify(variables)}: ${results[index]}`,
    );
  expect(shown(found)).toEqual(shown(answered));
  expect(new Set(answered)).toEqual(new Set(["true", "false"]));
});
