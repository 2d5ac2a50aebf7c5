/** Where the next page of an answer begins; empty for the first page. */
interface Position {
  readonly NextToken?: string;
}

/** Requests page after page and collects their items. */
export async function collectPages<Item>(
  ask: (
    position: Position,
  ) => Promise<{ readonly items: readonly Item[] | undefined; readonly next: string | undefined }>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  const position: { NextToken?: string } = {};
  for (;;) {
    const page = await ask(position);
    items.push(...(page.items ?? []));
    if (page.next === undefined || page.next === "") return items;
    position.NextToken = page.next;
  }
}
