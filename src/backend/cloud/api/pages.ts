import { ClusterError } from "../../../errors.ts";

/** Where the next page of an answer begins; empty for the first page. */
interface Position {
  readonly NextToken?: string;
}

/** A hundred thousand instances. */
const mostPages = 100;

/** Requests page after page and collects their items. Throws `cloud-failed` if there is no end of pages. */
export async function collectPages<Item>(
  ask: (
    position: Position,
  ) => Promise<{ readonly items: readonly Item[] | undefined; readonly next: string | undefined }>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  const position: { NextToken?: string } = {};
  for (let pages = 0; pages < mostPages; pages += 1) {
    const page = await ask(position);
    for (const item of page.items ?? []) items.push(item);
    if (page.next === undefined || page.next === "") return items;
    position.NextToken = page.next;
  }
  throw new ClusterError("cloud-failed", `The API's answer has more than ${mostPages} pages.`, {
    hint: "Check what answers at the API's address (AWS_ENDPOINT_URL_EC2, HTTPS_PROXY).",
  });
}
