import { expect, test } from "bun:test";
import { pythonFaults } from "../../../scripts/check-python.ts";

test("what Python 2.7 and 3 both take has no faults", () => {
  const text =
    'class A(object):\n    """B."""\n\n    def f(self, a=b"x"):\n        return [c for c in a]\n';
  expect(pythonFaults(text)).toEqual([]);
});

test.each([
  "f'{1}'",
  "def f(a: int):\n    pass",
  "def f(*, a):\n    pass",
  "a: int = 1",
  "raise E() from None",
  "if (a := 1):\n    pass",
  "a, *b = c",
  "async def f():\n    pass",
  "def f():\n    yield from a",
  "def f():\n    nonlocal a",
  "print('a', file=b)",
  "a = 1_000",
])("what came with Python 3 is one: %s", (text) => {
  expect(pythonFaults(`${text}\n`)).not.toEqual([]);
});
