# A machine with a real systemd as process 1, in namespaces; sourced by scripts/boot-test, not run.
#
# Its root is an overlay of this system's: what is written stays in memory, and is gone with the machine.
# Of this system it has the programs and the libraries; its services, its /run, /tmp and /dev are its own.
# It has no network, and whatever is enabled here is not enabled there.

# shellcheck source=scripts/root.bash
source "$(dirname "${BASH_SOURCE[0]}")/root.bash"

# missing_for_machine: prints why no such machine can be made here; nothing if one can.
missing_for_machine() {
    local name
    ((EUID == 0)) || { echo "it needs root"; return; }
    [[ -x /lib/systemd/systemd ]] || { echo "systemd is not installed"; return; }
    for name in unshare nsenter dpkg findmnt; do
        command -v "$name" >/dev/null || { echo "$name is not installed"; return; }
    done
    [[ -n $(findmnt -nt cgroup2 -o TARGET | head -n 1) ]] || { echo "there is no cgroup2 file system"; return; }
    unshare --pid --mount --uts --ipc --net --cgroup --fork mount -t tmpfs none /mnt 2>/dev/null ||
        echo "namespaces and mounts are not allowed"
}

# start_machine DIRECTORY: makes a machine below an empty directory, and waits until it has started.
# Sets `machine` to the pid of its systemd.
start_machine() {
    local place=$1 outer
    # Of a group of its own: systemd takes the root of what it sees for its own.
    group=$(findmnt -nt cgroup2 -o TARGET | head -n 1)/boot-test-$$
    mkdir -p "$place" "$group"
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        exec unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child \
            bash "${BASH_SOURCE[0]}" first "$place" >"$place.log" 2>&1
    ) &
    outer=$!
    for ((try = 0; try < 300; try++)); do
        machine=$(pgrep -P "$outer" || true)
        [[ -z $machine ]] || case $(inside systemctl is-system-running 2>/dev/null || true) in
        running | degraded) return 0 ;;
        esac
        kill -0 "$outer" 2>/dev/null || break
        sleep 0.2
    done
    sed 's/^/  /' "$place.log" >&2
    fail "systemd did not start in the machine"
}

# end_machine: ends all its processes.
end_machine() {
    [[ -n ${machine-} ]] || return 0
    kill -KILL "$machine" 2>/dev/null || true
    wait 2>/dev/null || true
    machine=
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
}

# inside COMMAND…: runs it in the machine, as root.
inside() {
    nsenter --target "$machine" --pid --mount --uts --ipc --net --cgroup \
        --root="/proc/$machine/root" --wd=/ -- \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# The first process: makes the root, moves into it, and becomes systemd.
first_process() {
    local place=$1 root=$1/root
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 tmpfs "$place"
    mkdir "$place"/{upper,work,root}
    chmod 755 "$place"/{upper,root}
    mount -t overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" overlay "$root"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    mount_devices "$root"
    forget_this_system "$root"
    enter_root "$root"
    # As systemd makes it where it is not in a container: credentials are mounted for a service elsewhere.
    mount --make-rshared /
    # It knows by this variable that no hardware is its own.
    exec env -i container=boot-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /lib/systemd/systemd --system --log-target=journal --log-level=info --show-status=0 </dev/null
}

# Removes what this system has enabled, and a stated that is installed on it.
forget_this_system() {
    local root=$1
    rm -rf "$root"/etc/systemd/system/*.{wants,requires} "$root"/etc/systemd/system/stated* \
        "$root"/etc/stated "$root"/var/lib/stated "$root"/usr/{,local/}bin/{stated,statectl} \
        "$root"/{usr,usr/local,etc}/lib/systemd/{system,user}/stated* \
        "$root"/usr/lib/{sysusers,tmpfiles}.d/stated.conf "$root"/etc/{sysusers,tmpfiles}.d/stated.conf \
        "$root"/var/lib/dpkg/info/stated.* "$root"/usr/sbin/policy-rc.d "$root"/var/lib/systemd/deb-systemd-helper-*/stated*
    ln -sfn /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
    sed -i '/^stated:/d' "$root"/etc/{passwd,group,shadow,gshadow}
    rm -rf "$root/var/log/journal"
}

if [[ ${1-} == first && ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    first_process "$2"
fi
