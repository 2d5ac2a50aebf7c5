#!/bin/sh
# Installs the platform on a node: runs the artifact's install script, waits for what it started, and reports to the
# bootstrap server. Runs as root behind runner-start.sh, as a unit of systemd, and again after a reboot in the middle.
# Prints into the install log.
# Values: STATUS_FILE, the file with the outcome; INSTALL_SCRIPT with RETURN_FLAG and ROLE; MARKER, the file of an
# installed platform; SETUP_UNITS, which continue after the script; SHIM_FOLDER; SHIMS, programs to replace while the
# script runs, and for each the text SHIM_<program>; UNIT, its own; BOOTSTRAP_SECONDS, SETUP_SECONDS and REPORT_SECONDS,
# limits.

install() {
  if [ "$1" = running ]; then
    echo 'The machine was restarted during the installation, which now starts again.'
    [ ! -e "$MARKER" ] || return 0
  fi
  echo running >"$STATUS_FILE"
  limit "$BOOTSTRAP_SECONDS"
  until ask "$INSTALL_SCRIPT" -o "$INSTALL_SCRIPT"; do
    pause || {
      echo 'Cannot read the install script from the bootstrap server.'
      return 1
    }
  done
  for program in $SHIMS; do shim "$program"; done
  bash "$INSTALL_SCRIPT" "$RETURN_FLAG" "$ROLE"
}

# Puts a program's replacement first on the path; in it, $real is the node's own program.
shim() {
  text=
  eval "text=\$SHIM_$1"
  mkdir -p "$SHIM_FOLDER"
  printf '#!/bin/sh\nreal=%s\n%s' "$(command -v "$1")" "$text" >"$SHIM_FOLDER/$1"
  chmod 755 "$SHIM_FOLDER/$1"
  PATH=$SHIM_FOLDER:$PATH
  export PATH
}

# Whether everything that the install script started has finished.
is_set_up() {
  for each in $SETUP_UNITS; do
    case $(systemctl show -p ActiveState "$each.service") in
      *=failed) return 0 ;;
      *=activating | *=reloading | '') return 1 ;;
    esac
  done
  [ -e "$MARKER" ]
}

before=$(cat "$STATUS_FILE" 2>/dev/null)
status=0
if [ "$before" != 'exit 0' ]; then
  install "$before"
  status=$?
  # After a power cut the outcome must not outlive what was installed. The sync of CentOS 7 knows no files.
  [ "$status" -ne 0 ] || sync -f "$STATUS_FILE" /etc /opt /usr /var 2>/dev/null || sync
  echo "exit $status" >"$STATUS_FILE.new"
  mv -f "$STATUS_FILE.new" "$STATUS_FILE"
fi
# The install script and the units that follow it need the bootstrap server, so the node reports only when both have ended.
limit "$SETUP_SECONDS"
until [ "$status" -ne 0 ] || is_set_up || ! pause; do :; done
limit "$REPORT_SECONDS"
until ask installed --data '' -o /dev/null 2>/dev/null || ! pause; do :; done
systemctl --no-reload disable "$UNIT" 2>/dev/null
exit "$status"
