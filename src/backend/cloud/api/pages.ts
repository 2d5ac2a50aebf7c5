/** Where the next page of an answer begins; nothing for the first. */
interface Position {
  readonly NextToken?: string;
}

/** Asks for page after page, and gathers what they hold. */
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
