# How the scripts make the root of a machine of namespaces; sourced by scripts/boot.bash and scripts/fresh-machine, not run.

# mount_devices ROOT: mounts /dev of a machine, with nodes that no hardware belongs to, terminals and shared memory of its own.
mount_devices() {
    local root=$1 name
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    mkdir "$root"/dev/{pts,shm}
    for name in null zero full random urandom tty; do
        touch "$root/dev/$name"
        mount --bind "/dev/$name" "$root/dev/$name"
    done
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for name in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${name%:*}" "$root/dev/${name#*:}"; done
}

# enter_root ROOT: makes a mount point the root of this process; the former one is out of reach.
enter_root() {
    local umount
    # The new root may have none of its own.
    umount=$(type -P umount)
    mkdir "$1/former"
    cd "$1" || return
    pivot_root . former
    "/former$umount" -l /former
    rmdir /former
}
