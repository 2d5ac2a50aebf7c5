import { layouts } from "../../src/platform/layouts/find-layout.ts";
import type { Layout } from "../../src/platform/layouts/layout.ts";

export const layoutOf = (name: string): Layout => layouts.find((layout) => layout.name === name)!;
