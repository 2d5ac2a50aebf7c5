/** What the tests of one file share: a cloud or an engine, and an artifact. */
import { afterAll, beforeAll } from "bun:test";
import { buildArtifact } from "./artifacts.ts";
import type { TestBackend } from "./test-backend.ts";

interface SharedBackend<Backend> {
  readonly backend: () => Backend;
  readonly artifact: () => string;
}

/** Opens a cloud or an engine before the first test, with an artifact in its folder, and closes it after the last test. */
export function shareBackend<Backend extends TestBackend>(
  open: () => Promise<Backend>,
  variant: "oss" | "enterprise" = "oss",
): SharedBackend<Backend> {
  const state: { backend?: Backend; artifact?: string } = {};
  beforeAll(async () => {
    state.backend = await open();
    state.artifact = await buildArtifact(variant, state.backend.folder);
  });
  afterAll(async () => {
    await state.backend?.[Symbol.asyncDispose]();
  });
  return { backend: () => state.backend!, artifact: () => state.artifact! };
}
