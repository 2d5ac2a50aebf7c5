# shellcheck shell=sh
# Sourced by the scripts of this folder, which set `root` (the repository) first. Puts the pinned Bun on the PATH, and defines
# functions that the scripts share.

bun_version=$(sed -n 's/^ *"bun": "\([0-9.]*\)".*/\1/p' "${root:?}/package.json")
# A folder of our own, so that the user's Bun stays as it is.
bun_folder=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/cluster-e2e/bun-$bun_version
# dockerd and debootstrap are in folders that are not on every user's PATH.
PATH=$PATH:/usr/sbin:/sbin
case ":$PATH:" in
  *":$bun_folder:"*) ;;
  *) [ "$(bun --version 2>/dev/null || :)" = "$bun_version" ] || PATH=$bun_folder:$PATH ;;
esac
export PATH
# Everybody may read what is built here, and only its owner may change it.
umask 022
# These variables make any Bun program load other code or settings.
unset BUN_OPTIONS BUN_BE_BUN BUN_INSPECT BUN_INSPECT_CONNECT_TO BUN_INSPECT_NOTIFY BUN_INSPECT_PRELOAD

say() { printf '%s\n' "$*" >&2; }

# Every script exits with this code on a machine that is not set up.
not_set_up() {
  say "$*"
  exit 5
}

# For tests and demos, which connect to nothing outside this machine: they need no proxy, and must not reach a real account of
# the user by mistake.
keep_to_this_machine() {
  unset HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
  for name in $(env | sed -n 's/^\(\(AWS\|CLOUD\|CLUSTER\)_[A-Z0-9_]*\)=.*/\1/p'); do
    case $name in CLUSTER_E2E_*) ;; *) unset "$name" ;; esac
  done
}

# Finds everything that was started, directly or indirectly, with a temporary folder in FOLDER: such processes have it in their
# environment, and the containers and networks of a local cloud have it as a label.
processes_of() { # FOLDER
  # With an empty environment, so that these processes don't find themselves.
  env -i PATH="$PATH" sh -c 'grep -l --fixed-strings --text --no-messages "=$1/" /proc/[0-9]*/environ | cut -d / -f 3' sh "$1"
}

# Without a daemon there are none.
containers_of() { # FOLDER
  docker ps --all --format '{{.ID}} {{.Label "cluster-e2e.local-cloud"}}' 2>/dev/null | grep -F " $1/" | cut -d ' ' -f 1
}

networks_of() { # FOLDER
  docker network ls --format '{{.ID}} {{.Label "cluster-e2e.local-cloud"}}' 2>/dev/null | grep -F " $1/" | cut -d ' ' -f 1
}

# Every user may write to the temporary folder of scripts/test. What others have put there names no cluster to remove, and no
# Podman, whose configuration names programs to run.
own_folders() { # FOLDER TEST...
  folder=$1
  shift
  find "$folder" -type d -user "$(id -u)" "$@" 2>/dev/null
}

# Prints the creation ids of container clusters whose state is in FOLDER, in folders named CLUSTER_ID-CREATION_ID.
creations_of() { # FOLDER
  own_folders "$1" -path '*/cluster-e2e/container' -prune -print |
    while read -r folder; do
      own_folders "$folder" -mindepth 1 -maxdepth 2 -name '*-????????????????' | sed -n 's/.*-\([0-9a-f]\{16\}\)$/\1/p'
    done
}

# Docker removes a container before its network, volumes and images.
end_creation() { # CREATION ID
  label=label=cluster-e2e.creation-id=$1
  docker ps --all --quiet --filter "$label" | xargs -r docker rm --force --volumes >/dev/null 2>&1 || :
  docker network ls --quiet --filter "$label" | xargs -r docker network rm >/dev/null 2>&1 || :
  docker volume ls --quiet --filter "$label" | xargs -r docker volume rm >/dev/null 2>&1 || :
  docker images --quiet --filter "$label" | xargs -r docker rmi --force >/dev/null 2>&1 || :
}

# Prints the storage folders of the Podmans whose storage is in FOLDER.
podmans_of() { # FOLDER
  own_folders "$1" -maxdepth 3 -name podman -exec test -f {}/storage.conf \; -print
}

# Ends a Podman. Its containers and networks are gone when this returns.
end_podman() { # ITS FOLDER
  CONTAINERS_STORAGE_CONF=$1/storage.conf CONTAINERS_CONF=$1/containers.conf
  export CONTAINERS_STORAGE_CONF CONTAINERS_CONF
  podman rm --all --force --volumes --time=0 >/dev/null 2>&1 || :
  podman network prune --force >/dev/null 2>&1 || :
  run_folder=$(sed -n 's|^runroot = "\(/run/cluster-e2e-podman-[A-Za-z0-9]*\)"$|\1|p' "$1/storage.conf")
  [ -z "$run_folder" ] || rm -rf --one-file-system "$run_folder"
  unset CONTAINERS_STORAGE_CONF CONTAINERS_CONF
}

# Stops everything: local clouds first, because they remove their machines themselves.
end_all_of() { # FOLDER
  seconds=180
  for process in $(processes_of "$1"); do kill -TERM "$process" 2>/dev/null || :; done
  # Its containers have monitor processes, and exist as long as these run.
  for folder in $(podmans_of "$1"); do end_podman "$folder"; done
  while [ -n "$(processes_of "$1")" ] && [ "$seconds" -gt 0 ]; do
    sleep 1
    seconds=$((seconds - 1))
  done
  for process in $(processes_of "$1"); do kill -KILL "$process" 2>/dev/null || :; done
  for container in $(containers_of "$1"); do docker rm --force --volumes "$container" >/dev/null || :; done
  for network in $(networks_of "$1"); do docker network rm "$network" >/dev/null || :; done
  for creation in $(creations_of "$1"); do end_creation "$creation"; done
  # A Podman that was killed while it built an image leaves its layers mounted.
  cut -d ' ' -f 2 /proc/mounts 2>/dev/null | sort -r | while IFS= read -r mount; do
    # Spaces are \040 there.
    mount=$(printf '%b' "$mount")
    case $mount in "$1"/*) umount "$mount" 2>/dev/null || : ;; esac
  done
}
