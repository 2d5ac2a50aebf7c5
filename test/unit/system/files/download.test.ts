import { expect, test } from "bun:test";
import { readPart } from "../../../../src/system/files/download.ts";

const extent = (status: number, headers: Record<string, string>) =>
  readPart(new Response(null, { status, headers }));

test.each([
  ["bytes 0-9/100", { offset: 0, totalBytes: 100 }],
  ["bytes 10-99/100", { offset: 10, totalBytes: 100 }],
  ["bytes 10-99/*", { offset: 10, totalBytes: undefined }],
])("the part %j is placed", (range, placed) => {
  expect(extent(206, { "content-range": range })).toEqual({
    ...placed,
    validator: undefined,
    isEncoded: false,
  });
});

test.each([{}, { "content-range": "bytes */100" }, { "content-range": "lines 1-2/3" }])(
  "a part with the headers %j is refused, because nobody knows where it belongs",
  (headers) => {
    expect(extent(206, headers)).toEqual({
      cause: "transfer",
      reason: "the server sent part of it without a Content-Range header.",
    });
  },
);

test.each([
  ["its length", { "content-length": "100" }, { totalBytes: 100, validator: undefined }],
  [
    "no length if it is compressed",
    { "content-length": "50", "content-encoding": "gzip" },
    { totalBytes: undefined },
  ],
  ["its entity tag", { etag: '"v1"', "last-modified": "Wed" }, { validator: '"v1"' }],
  [
    "no weak entity tag, but its date",
    { etag: 'W/"v1"', "last-modified": "Wed" },
    { validator: "Wed" },
  ],
])("of a whole file, %s counts", (_, headers, found) => {
  expect(extent(200, headers as Record<string, string>)).toMatchObject({ offset: 0, ...found });
});
