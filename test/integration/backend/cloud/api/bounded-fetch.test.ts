/** How requests to the API fail, end and trust. */
import { expect, test } from "bun:test";
import {
  UnreadableAnswer,
  boundedFetch,
  readIssued,
} from "../../../../../src/backend/cloud/api/request-handler.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { freePort } from "../../../../support/free-port.ts";
import { serveOnLoopback } from "../../../../support/loopback-server.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";
import { makeAuthority } from "../../../platform/readiness/readiness-web.ts";

const fetchAsIs = boundedFetch(undefined, (response) => response);

test("a server that can't be reached is a failure with a reason for users and a code for the SDK", async () => {
  const failure: unknown = await failureOf(fetchAsIs(`http://127.0.0.1:${await freePort()}`));
  expect(failure).toMatchObject({ name: "RequestFailed", code: "ECONNREFUSED" });
  expect(String(failure)).toContain("(ECONNREFUSED)");
});

test.each([
  ["its own signal", (url: string, signal: AbortSignal) => new Request(url, { signal }), {}],
  ["the signal beside it", (url: string) => url, undefined],
])("a request that is aborted by %s ends at the server too", async (_, requestOf, given) => {
  const seen = { requests: 0, aborted: 0 };
  using server = serveOnLoopback(async ({ signal }) => {
    signal.addEventListener("abort", () => (seen.aborted += 1));
    seen.requests += 1;
    await until("the client has gone", () => signal.aborted);
    return new Response("");
  });
  const [interrupt, reason] = [new AbortController(), new Error("interrupted")];
  const fetching = failureOf(
    fetchAsIs(requestOf(server.url.href, interrupt.signal), given ?? interrupt),
  );
  await until("the request has arrived", () => seen.requests === 1);
  interrupt.abort(reason);
  expect((await fetching) as Error).toBe(reason);
  await until("the server has seen its end", () => seen.aborted === 1);
});

test("an answer that isn't the API's is reported as it is", async () => {
  using server = serveOnLoopback(() => new Response(""));
  const unreadable = new UnreadableAnswer("a web page came instead");
  const judging = boundedFetch(undefined, async () => Promise.reject(unreadable));
  expect((await failureOf(judging(server.url.href))) as Error).toBe(unreadable);
});

// Whoever answers in place of a service that issues credentials could fill the memory.
test("an answer with credentials that has no end is left, and one with none is read", async () => {
  const seen = { megabytes: 0 };
  const megabyte = Buffer.alloc(1024 * 1024, "x");
  const endless = (): Response =>
    new Response(
      new ReadableStream({
        pull: (controller) => {
          seen.megabytes += 1;
          if (seen.megabytes < 200) controller.enqueue(megabyte);
          else controller.close();
        },
      }),
    );
  using server = serveOnLoopback(({ url }) =>
    url.endsWith("/none") ? new Response(null, { status: 204 }) : endless(),
  );
  const fetching = boundedFetch(undefined, readIssued);
  expect(await failureOf(fetching(server.url.href))).toMatchObject({
    message: "the answer is too long (EFBIG)",
  });
  expect(seen.megabytes).toBeLessThan(100);
  expect((await fetching(`${server.url.href}none`)).status).toBe(204);
});

test("a server whose certificate another authority has signed is trusted only with that authority", async () => {
  await using folder = await scratchFolder();
  const authority = await makeAuthority(folder.path);
  const { certificate, key } = await authority.issue("127.0.0.1");
  const tls = { cert: certificate, key };
  using server = serveOnLoopback(() => new Response(""), { tls });
  expect((await failureOf(fetchAsIs(server.url.href))) as Error).toHaveProperty(
    "name",
    "RequestFailed",
  );
  const trusting = boundedFetch(authority.certificate, (response) => response);
  expect((await trusting(server.url.href)).status).toBe(200);
});
