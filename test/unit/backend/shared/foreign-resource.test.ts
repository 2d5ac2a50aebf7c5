import { expect, test } from "bun:test";
import { shownId } from "../../../../src/backend/shared/foreign-resource.ts";
import { hostileTexts } from "../../../support/hostile-text.ts";

test("an id that somebody else made up is shown without anything that isn't part of one", () => {
  expect(shownId("i-0123\u001B[31m\n456")).toBe("i-012331m456");
  expect(shownId("sg-1/../x")).toBe("sg-1..x");
  for (const text of hostileTexts(13, 5000))
    expect(shownId(text)).toMatch(/^[A-Za-z0-9_.:-]{0,80}$/);
});
