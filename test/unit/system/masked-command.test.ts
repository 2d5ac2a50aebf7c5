import { expect, test } from "bun:test";
import { maskedCommand } from "../../../src/system/masked-command.ts";

test.each<[words: readonly string[], shown: string]>([
  [["./test.sh", "--fast"], "./test.sh --fast"],
  [["pytest -k 'not slow' | tee log"], "pytest -k 'not slow' | tee log"],
  [["login", "--password", "hunter22"], "login --password ***"],
  [["login", "--password=hunter22"], "login --password=***"],
  [["login --db-password 'two words' now"], "login --db-password *** now"],
  [["MYSQL_PWD=hunter22 mysql -e 'select 1'"], "MYSQL_PWD=*** mysql -e 'select 1'"],
  [["once", "--env", "A=hunter22", "--env=B=hunter22", "x"], "once --env A=*** --env=B=*** x"],
  [["env PGPASSWORD='a b' psql"], "env PGPASSWORD=*** psql"],
  [
    ["curl", "-H", "Authorization: Bearer abc", "http://x/"],
    "curl -H 'Authorization: ***' http://x/",
  ],
  [["curl -H 'Authorization: Bearer abc' x"], "curl -H 'Authorization: ***' x"],
  [["curl", "--header=X-Auth-Token: abc"], "curl '--header=X-Auth-Token: ***'"],
  [["sh -c 'curl -H \"Cookie: abc\" x'"], "sh -c 'curl -H \"Cookie: ***\" x'"],
  [["pytest", "tests/*.py", "$HOME", "a;b"], "pytest 'tests/*.py' '$HOME' 'a;b'"],
  [["wget", "--token=a&b", "http://x/?q=1"], "wget '--token=***' 'http://x/?q=1'"],
  [["curl -u admin:hunter22 x"], "curl -u admin:*** x"],
  [["curl -uadmin:hunter22 x"], "curl -uadmin:*** x"],
  [["curl", "--user", "admin:hunter22"], "curl --user admin:***"],
  [["git clone https://me:hunter22@host/x.git"], "git clone https://***@host/x.git"],
  [[`curl -d '{"password": "hunter22", "name": "a"}'`], `curl -d '{"password": *** "name": "a"}'`],
  [["sh", "-c", "TOKEN=abc ./run --api-key abc; ls"], "sh -c 'TOKEN=*** ./run --api-key ***; ls'"],
])("%j is shown as %p", (words, shown) => {
  expect(maskedCommand(words)).toBe(shown);
});

test("a long hostile line takes no time and is cut", () => {
  for (const part of ["'", '"', "\\", "--password ", "://", "=", "a'b\"c"])
    expect(maskedCommand([part.repeat(2_000_000)]).length).toBeLessThan(20_000);
});
