import { expect, test } from "bun:test";
import { judgeResponse } from "../../../../../src/backend/cloud/api/request-handler.ts";
import { failureOf } from "../../../../support/failure-of.ts";

const answer =
  '<?xml version="1.0"?>\n<DescribeRegionsResponse xmlns="x">\n</DescribeRegionsResponse>\n';
const failure = "<Response><Errors><Error><Code>Unsupported</Code></Error></Errors></Response>\n";

test.each([
  ["nothing", "", "an empty answer"],
  ["white space", " \n", "an empty answer"],
  ["a web page", "\n<!DOCTYPE html><html></html>", "a web page"],
  ["half an answer", answer.slice(0, -20), "an incomplete or foreign document"],
  ["JSON", "{}", "something that is not the API's"],
  ["an error with the status of a success", failure, "an incomplete or foreign document"],
])("%s is not an answer, and the error describes it", async (_, text, description) => {
  const error = await failureOf(judgeResponse(new Response(text)));
  expect(error.message).toStartWith(description);
  expect(error.message).toEndWith("came instead (HTTP 200)");
});

test.each([
  ["without a code", failure.replace("Unsupported", "")],
  ["without its end", failure.slice(0, -12)],
  ["of another kind", failure.replaceAll("Response", "Reply")],
])("a failure %s is not from EC2", async (_, text) => {
  const error = await failureOf(judgeResponse(new Response(text, { status: 400 })));
  expect(error.message).toBe("an incomplete or foreign document came instead (HTTP 400)");
});

test("a complete answer is passed on unchanged", async () => {
  expect(await (await judgeResponse(new Response(answer))).text()).toBe(answer);
});

test.each([
  [500, "Unsupported", 400],
  [500, "InsufficientInstanceCapacity", 400],
  [500, "InternalError", 500],
  [503, "Unsupported", 503],
])("an error %d with the code %s counts as %d", async (status, code, expected) => {
  const text = failure.replace("Unsupported", code);
  expect((await judgeResponse(new Response(text, { status }))).status).toBe(expected);
});
