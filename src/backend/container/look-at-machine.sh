# Run by sh in a container of the node image, as root. Prints what the container sees of the engine's computer: the free space where containers are, in
# the format of df, then one line for each other fact.

df -kP / | tail -n 1 | sed 's/^/space /'
[ ! -r /proc/sys/fs/inotify/max_user_instances ] || echo "inotify $(cat /proc/sys/fs/inotify/max_user_instances)"
[ ! -d /engine-cgroup ] || if [ -e /engine-cgroup/systemd ]; then echo "systemd yes"; else echo "systemd no"; fi
