import { expect, test } from "bun:test";
import { quote } from "../../../src/ssh/shell-text.ts";

test.each([
  [["ls", "-la", "/etc/ssh"], "ls -la /etc/ssh"],
  [["echo", "a b"], "echo 'a b'"],
  [["echo", "it's"], "echo 'it'\\''s'"],
  [["echo", '$HOME `id` \\ " ! * ~'], "echo '$HOME `id` \\ \" ! * ~'"],
  [["echo", ""], "echo ''"],
  [["A=1"], "'A=1'"],
  [["if", "time", "done"], "'if' 'time' 'done'"],
  [["a\nb"], "'a\nb'"],
  [["größe"], "'größe'"],
  [["~root"], "'~root'"],
])("%j is written %s", (words, expected) => {
  expect(quote(words)).toBe(expected);
});

test("a shell reads back any characters as they were", async () => {
  const all = Array.from({ length: 0x2ff }, (_, code) => String.fromCharCode(code + 1)).join("");
  const words = [all, "", "-n", "'", "''", "a'b'c", "\\'", "\n", "$(id)", "esac"];
  const read = await Bun.$`sh -c ${`printf '%s\\0' ${quote(words)}`}`.text();
  expect(read.split("\0").slice(0, -1)).toEqual(words);
});

test("a NUL character is refused, and the value is not shown", () => {
  expect(() => quote(["secret\0"])).toThrow(
    expect.objectContaining({
      id: "bad-usage",
      message: "A value contains a NUL character, which cannot be passed to a shell.",
    }),
  );
});
