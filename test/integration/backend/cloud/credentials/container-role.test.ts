/** The credentials of a container's role, from the service that its platform names. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findSource } from "../../../../support/find-source.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { serveOnLoopback } from "../../../../support/loopback-server.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { identity, keys } from "./role-credentials.ts";

const ask = async (url: string, more: Readonly<Record<string, string>> = {}) =>
  (await findSource({ AWS_CONTAINER_CREDENTIALS_FULL_URI: url, ...more })).provide();

test("the service gets the token of the file, and the query of its URL", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "token");
  await writeFile(file, "token of a file\n");
  const asked: (string | null)[] = [];
  using server = serveOnLoopback((request) => {
    asked.push(request.headers.get("authorization"), new URL(request.url).search);
    return Response.json(keys);
  });
  expect(
    await ask(`${server.url.href}role?a=b`, {
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: "another",
    }),
  ).toEqual(identity);
  expect(asked).toEqual(["token of a file", "?a=b"]);
});

test("a profile's role is assumed with them", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "config");
  await writeFile(file, "[profile dev]\nrole_arn = r\ncredential_source = EcsContainer\n");
  const asked: string[] = [];
  using server = serveOnLoopback((request) => {
    asked.push(new URL(request.url).pathname);
    return request.method === "GET" ? Response.json(keys) : new Response("", { status: 400 });
  });
  const source = await findSource({
    CLOUD_PROFILE: "dev",
    AWS_CONFIG_FILE: file,
    AWS_ENDPOINT_URL_STS: `${server.url.href}sts`,
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url.href}role`,
  });
  await failureOf(source.provide());
  expect(asked.map((path) => path.slice(0, 5))).toEqual(["/role", "/sts/"]);
});

test("a service that is busy is asked again", async () => {
  const asked: number[] = [];
  using server = serveOnLoopback(() => {
    asked.push(1);
    return asked.length === 1 ? new Response("", { status: 503 }) : Response.json(keys);
  });
  expect(await ask(server.url.href)).toEqual(identity);
});

test("what can't be read is not shown, because it may hold a secret", async () => {
  using server = serveOnLoopback(
    () => new Response('{"AccessKeyId": "AK", "SecretAccessKey": wJalrXUtnFEMI}'),
  );
  const { message } = await failureOf(ask(server.url.href));
  expect(message).toBe(
    "its answer is not JSON with AccessKeyId, SecretAccessKey, Token and Expiration",
  );
});

// Whoever answers at a port that the service has left could fill the memory.
test("an answer without an end is left, and not asked for again", async () => {
  const seen = { requests: 0, megabytes: 0 };
  const megabyte = Buffer.alloc(1024 * 1024, "x");
  using server = serveOnLoopback(() => {
    seen.requests += 1;
    const pull = (controller: ReadableStreamDefaultController): void => {
      seen.megabytes += 1;
      if (seen.megabytes < 200) controller.enqueue(megabyte);
      else controller.close();
    };
    return new Response(new ReadableStream({ pull }));
  });
  expect((await failureOf(ask(server.url.href))).message).toBe("the answer is too long (EFBIG)");
  expect(seen.requests).toBe(1);
  expect(seen.megabytes).toBeLessThan(100);
});

test.each([
  "http://192.0.2.1/role",
  "http://127.0.0.1.example.com/role",
  "file:///etc/passwd",
  "/",
])("credentials are not asked for at %s", async (url) => {
  expect((await failureOf(ask(url))).message).toStartWith("its URL is neither one of https");
});
