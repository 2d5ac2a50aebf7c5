#!/bin/sh
# Logs in as the superuser and asks for the agents, on the master itself. Runs as the login user. Prints "login
# STATUS" and, after a login that returned a token, "agents STATUS" and the answer's body. A status of 000 means that
# there was no answer. The shell reads the whole text before anything runs. Only builtins and stdin carry password and
# token.
# Values: LOGIN_PATH; LOGIN_BODY, escaped for curl, with the password; AGENTS_PATH; MOST_BYTES of an answer.

umask 077
LC_ALL=C
export LC_ALL
ask() {
  curl -sS --noproxy '*' --connect-timeout 5 --max-time 15 --include --config - 2>/dev/null | head -c "$MOST_BYTES" | tr -d '\000'
}

# print_status NAME ANSWER
print_status() {
  status=$(printf '%s\n' "$2" | sed -n '1s,^HTTP/[0-9.]* \([0-9][0-9][0-9]\).*,\1,p')
  echo "$1 ${status:-000}"
}

main() {
  answer=$(printf '%s\n' "url = \"http://127.0.0.1$LOGIN_PATH\"" 'header = "Content-Type: application/json"' \
    'header = "Expect:"' "data-binary = \"$LOGIN_BODY\"" | ask)
  print_status login "$answer"
  [ "$status" = 200 ] || return 0
  token=$(printf '%s' "$answer" | tr -d '\r\n' | sed -n 's,.*"token"[[:space:]]*:[[:space:]]*"\([A-Za-z0-9._~+/=-]*\)".*,\1,p')
  [ -n "$token" ] || return 0
  answer=$(printf '%s\n' "url = \"http://127.0.0.1$AGENTS_PATH\"" "header = \"Authorization: token=$token\"" | ask)
  print_status agents "$answer"
  printf '%s\n' "$answer" | sed '1,/^\r*$/d'
}
main </dev/null
