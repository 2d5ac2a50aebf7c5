/** What must hold for any text from outside, tried with many; see test/support/holds.ts. */
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { BadValue } from "../../src/cli/options/option.ts";
import { parseDuration } from "../../src/cli/options/value-types.ts";
import { readVariableFile } from "../../src/commands/run/read-variable.ts";
import { ClusterError } from "../../src/errors.ts";
import * as read from "../../src/model/reader.ts";
import { lineSplitter } from "../../src/ssh/connection/command-output.ts";
import { knownHostsText, parseKnownHosts, renderSshConfig } from "../../src/ssh/openssh-files.ts";
import { generateKeyPair } from "../../src/ssh/keys.ts";
import { quote } from "../../src/ssh/shell-text.ts";
import { readTar } from "../../src/system/files/read-tar.ts";
import { parseJson } from "../../src/system/files/read-text.ts";
import { ArchiveProblem, tarStream, textFile } from "../../src/system/files/tar.ts";
import { Masker } from "../../src/system/masker.ts";
import { anyText, holds, pieces } from "../support/holds.ts";
import { scratchFolder } from "../support/scratch-folder.ts";

const cuts = fc.array(fc.nat(), { maxLength: 8 });
/** What a process can be given as a word: no NUL, and valid Unicode. */
const word = anyText.map((text) => text.replaceAll("\0", "").toWellFormed());

test("a shell reads back exactly the words that were quoted", async () => {
  await holds(40, [fc.array(word, { minLength: 1, maxLength: 30 })], (words) => {
    const { stdout } = spawnSync("sh", ["-c", `printf '%s\\0' ${quote(words)}`]);
    expect(stdout.toString().split("\0").slice(0, -1)).toEqual(words);
  });
});

const fileName = fc
  .array(fc.stringMatching(/^[\wäß木 '"$*-]{1,60}$/), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.join("/"));

async function* bytesIn(
  bytes: Buffer,
  positions: readonly number[],
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const piece of pieces(bytes.toString("latin1"), positions))
    yield Buffer.from(piece, "latin1");
}

async function entriesOf(archive: AsyncIterable<Uint8Array>) {
  const found: { readonly name: string; readonly mode: number; readonly text: string }[] = [];
  for await (const { name, mode, contents } of readTar(archive, {
    entries: 100,
    totalBytes: 1_000_000,
  })) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of contents) chunks.push(chunk);
    found.push({ name, mode, text: Buffer.concat(chunks).toString() });
  }
  return found;
}

const files = fc.array(
  fc.record({
    name: fileName,
    mode: fc.integer({ min: 0, max: 0o777 }),
    modifiedMs: fc.nat(),
    text: fc.string({ maxLength: 1200 }),
  }),
  { maxLength: 5 },
);

test("an archive that was written is read as it was, however it is cut", async () => {
  await holds(150, [files, cuts], async (given, positions) => {
    const bytes = await Array.fromAsync(tarStream(given.map(textFile)));
    const found = await entriesOf(bytesIn(Buffer.concat(bytes), positions));
    expect(found).toEqual(
      given.map(({ name, mode, text }) => ({ name, mode, text: Buffer.from(text).toString() })),
    );
  });
});

test("a damaged archive is read as far as it goes, or is an error of the archive", async () => {
  const damage = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 });
  await holds(200, [files, damage, fc.nat()], async (given, changes, length) => {
    const bytes = Buffer.concat(await Array.fromAsync(tarStream(given.map(textFile))));
    for (const [position, byte] of changes) bytes[position % bytes.length] = byte;
    await entriesOf(bytesIn(bytes.subarray(0, length % (bytes.length + 1)), [])).catch(
      (error: unknown) => {
        expect(error).toBeInstanceOf(ArchiveProblem);
      },
    );
  });
});

test("no secret of four characters or more is left in a text, whatever surrounds it", async () => {
  const secret = fc.stringMatching(/^[!-~äß木]{4,30}$/);
  await holds(
    300,
    [fc.array(secret, { minLength: 1, maxLength: 6 }), anyText, anyText],
    (secrets, before, after) => {
      const masker = new Masker();
      for (const each of secrets) masker.hide(each);
      for (const each of secrets) {
        for (const form of [each, encodeURIComponent(each), JSON.stringify(each).slice(1, -1)]) {
          const masked = masker.text(`${before}${form}${after}`);
          expect(masked).not.toBe(`${before}${form}${after}`);
          if (!`${before}${after}***`.includes(form)) expect(masked).not.toContain(form);
        }
      }
    },
  );
});

test("lines are the same however a text is cut, and none is lost", async () => {
  await holds(
    300,
    [fc.array(anyText, { maxLength: 20 }).map((parts) => parts.join("\n")), cuts],
    (text, positions) => {
      const lines: string[] = [];
      const splitter = lineSplitter((line) => lines.push(line));
      for (const piece of pieces(text, positions)) splitter.add(piece);
      splitter.end();
      expect(lines).toEqual(
        text.replace(/\n$/, "") === "" && !text.includes("\n")
          ? []
          : text.replace(/\n$/, "").split("\n"),
      );
    },
  );
});

test("readers return a value of their shape or nothing, and never throw", async () => {
  const shape = read.object({
    name: read.string,
    count: read.optional(read.positiveInteger),
    more: read.lenient(read.anyMapping),
  });
  const near = fc.record(
    { name: fc.anything(), count: fc.anything(), more: fc.anything() },
    { requiredKeys: [] },
  );
  await holds(500, [fc.oneof(near, fc.anything())], (value) => {
    const found = shape(value);
    if (found === undefined) return;
    expect(typeof found.name).toBe("string");
    if (found.count !== undefined) expect(found.count).toBeGreaterThan(0);
    if (found.more !== undefined) expect(read.isMapping(found.more)).toBe(true);
  });
});

test("JSON is read as JSON.parse reads it, and anything else is nothing", async () => {
  await holds(300, [fc.json()], (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });
  await holds(300, [anyText], (text) => {
    const parsed = parseJson(text);
    if (parsed !== undefined) expect(parsed).toEqual(JSON.parse(text));
  });
});

test("pinned keys are read back, and no other text becomes a pattern, a mark or another host", async () => {
  const key = Buffer.from(generateKeyPair("").publicKey.split(" ")[1] ?? "", "base64");
  const host = fc.stringMatching(/^[A-Za-z0-9.-]{1,40}$/);
  await holds(200, [fc.uniqueArray(host, { maxLength: 6 }), anyText], (hosts, other) => {
    const keys = new Map(hosts.map((name) => [name, key]));
    expect(new Map(parseKnownHosts(knownHostsText(keys)))).toEqual(keys);
    for (const [name] of parseKnownHosts(`${other} ssh-ed25519 ${key.toString("base64")}\n`))
      expect(name).toMatch(/^[A-Za-z0-9.:[\]-]+$/);
  });
});

test("ssh's configuration has a node's user and address as they are, or is refused", async () => {
  const paths = { identityFile: "/state/key", knownHostsFile: "/state/hosts" };
  await holds(300, [anyText, anyText], (user, host) => {
    const node = { id: "i-0", role: "master", index: 0, ssh: { host, port: 22, user } } as const;
    try {
      const text = renderSshConfig([node], paths);
      expect(text.split("\n").filter((line) => /^\s*(?:User|HostName) /i.test(line))).toHaveLength(
        host === "" ? 0 : 2,
      );
    } catch (error) {
      expect(error).toBeInstanceOf(ClusterError);
    }
  });
});

test.skipIf(Bun.which("ssh") === null)(
  "ssh reads a path from its configuration as it is, or it is refused",
  async () => {
    await using folder = await scratchFolder();
    const node = {
      id: "i-0",
      role: "master",
      index: 0,
      ssh: { host: "192.0.2.1", port: 22, user: "admin" },
    } as const;
    const path = word.map((text) => `/${text.replaceAll("\n", "")}x`);
    const config = join(folder.path, "config");
    await holds(40, [path], async (identityFile) => {
      try {
        await writeFile(
          config,
          renderSshConfig([node], { identityFile, knownHostsFile: "/state/hosts" }),
        );
      } catch (error) {
        expect(error).toBeInstanceOf(ClusterError);
        return;
      }
      const { stdout } = spawnSync("ssh", ["-G", "-F", config, "master_0"]);
      expect(stdout.toString().split("\n")).toContain(
        `identityfile ${identityFile.replaceAll("%", "%%")}`,
      );
    });
  },
);

test("an env file has each variable as it is written, or is refused", async () => {
  await using folder = await scratchFolder();
  const name = fc
    .stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,9}$/)
    .filter((text) => text !== "export");
  const contents = word
    .map((text) => text.replaceAll(/[\r\n]/g, ""))
    .filter((text) => !/^["']/.test(text));
  await holds(
    100,
    [fc.array(fc.record({ name, contents }), { maxLength: 8 })],
    async (variables) => {
      await writeFile(
        join(folder.path, "env"),
        variables.map((each) => `${each.name}=${each.contents}\n`).join(""),
      );
      expect(await readVariableFile("env", { cwd: folder.path })).toEqual(variables);
    },
  );
});

test("a duration is the sum of its units, or is refused", async () => {
  const part = (unit: string): fc.Arbitrary<[string, number]> =>
    fc.nat({ max: 50 }).map((count) => [`${count}${unit}`, count]);
  await holds(200, [part("h"), part("m"), part("s")], ([hours, h], [minutes, m], [seconds, s]) => {
    if (h + m + s > 0)
      expect(parseDuration(hours + minutes + seconds)).toBe(((h * 60 + m) * 60 + s) * 1000);
  });
  await holds(300, [anyText], (text) => {
    try {
      expect(parseDuration(text)).toBeWithin(1, 2 ** 31);
    } catch (error) {
      expect(error).toBeInstanceOf(BadValue);
    }
  });
});
