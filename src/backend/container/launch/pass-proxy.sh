#!/bin/sh
# A function that gives logins to a node the proxy that the engine gives its builds and containers. Runs as root, at each
# start of the node, in front of start-system.sh, which calls it. Prints why a proxy is left out, without its text, which
# may have a password. Values: STATE, as in start-system.sh.

# pass_proxy FILE, such as /etc/environment. What the node itself writes there stays; a proxy there is the only one.
pass_proxy() {
  touch "$1" "$STATE/proxy"
  proxy_lines >"$STATE/proxy.new"
  if [ "$(cat "$STATE/proxy.new")" != "$(cat "$STATE/proxy")" ]; then
    own=$(grep -vxF -f "$STATE/proxy" "$1" || :)
    ! echo "$own" | grep -qi '^[^#]*_proxy=' || : >"$STATE/proxy.new"
    { [ -z "$own" ] || echo "$own"; cat "$STATE/proxy.new"; } >"$1"
  fi
  mv -f "$STATE/proxy.new" "$STATE/proxy"
}

proxy_lines() {
  some=
  for name in http_proxy https_proxy ftp_proxy all_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY; do
    value=$(printenv "$name" || :)
    [ -n "$value" ] || continue
    host=${value#*://}
    host=${host%%/*}
    case ${host##*@} in
      localhost | localhost:* | 127.* | 0.0.0.0 | 0.0.0.0:* | '[::1]'* | '[::]'*)
        echo "$name names this computer's own loopback address, which nodes cannot reach: left out." >&2
        continue
        ;;
    esac
    ! line "$name" "$value" || some=yes
  done
  [ -n "$some" ] || return 0
  direct=$(printenv no_proxy || printenv NO_PROXY || :)
  direct=${direct:+$direct,}localhost,127.0.0.1,::1
  while read -r address names; do
    for word in $address $names; do direct=$direct,$word; done
  done <"$STATE/hosts"
  line no_proxy "$direct"
  line NO_PROXY "$direct"
}

# line NAME VALUE. Logins, and units that read the file, take these characters for themselves.
line() {
  case $2 in
    *[![:graph:]]* | *[\"\'\\\#\$\`]*) echo "$1 has characters that the node cannot keep: left out." >&2 && return 1 ;;
  esac
  echo "$1=$2"
}
