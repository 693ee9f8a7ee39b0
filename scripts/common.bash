# What the scripts share: where they are, Swift, and packages of the system. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Programs are found by PATH alone, also those of an administrator, which the PATH of another user may lack.
PATH=$PATH:/usr/sbin:/sbin

say() { printf '\n== %s\n' "$*"; }

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Puts Swift on the PATH, from where it usually is.
need_swift() {
    local place
    for place in "" /opt/swift/usr/bin /usr/local/swift/usr/bin /usr/share/swift/usr/bin \
        "${HOME:-/root}/.local/share/swiftly/bin"; do
        if [[ -z $place ]] && command -v swift >/dev/null; then return; fi
        if [[ -n $place && -x $place/swift ]]; then
            PATH=$place:$PATH
            return
        fi
    done
    fail "Swift 6.2 or newer is needed: https://www.swift.org/install/linux/"
}

# need_packages NAME…: installs those of the names that dpkg does not know as installed.
need_packages() {
    local name missing=() as_root=()
    command -v dpkg-query >/dev/null || fail "this system has no apt; install by hand: $*"
    for name in "$@"; do
        [[ $(dpkg-query -W -f='${Status}' "$name" 2>/dev/null || true) == *" installed" ]] ||
            missing+=("$name")
    done
    ((${#missing[@]})) || return 0
    say "apt-get install ${missing[*]}"
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            fail "run this as root, or install by hand: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq || "${as_root[@]}" apt-get update -qq ||
        fail "apt-get update failed twice; is the network there?"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
        fail "apt-get install ${missing[*]} failed"
}

# need_etcd: puts etcd and etcdctl on the PATH. Debian's packages start a service, so that they are only unpacked, below
# .build; an etcd that is installed is used as it is.
need_etcd() {
    local place=$root/.build/etcd name
    if command -v etcd >/dev/null && command -v etcdctl >/dev/null; then return; fi
    PATH=$place/usr/bin:$PATH
    [[ ! -x $place/usr/bin/etcd || ! -x $place/usr/bin/etcdctl ]] || return 0
    say "unpacking etcd"
    command -v apt-get >/dev/null || fail "this system has no apt; install etcd by hand"
    mkdir -p "$place"
    for name in etcd-server etcd-client; do
        (cd "$place" && { apt-get download -qq "$name" 2>/dev/null ||
            { need_root apt-get update -qq && apt-get download -qq "$name"; }; } &&
            dpkg-deb -x "$name"_*.deb . && rm "$name"_*.deb) || fail "apt-get download $name failed"
    done
}

# need_root COMMAND…: runs it as root.
need_root() {
    if ((EUID == 0)); then
        "$@"
    else
        command -v sudo >/dev/null || fail "run this as root: $*"
        sudo "$@"
    fi
}

# need_static_libraries: static programs link libstdc++, which swift.org does not list for Swift that is unpacked.
need_static_libraries() {
    command -v dpkg-query >/dev/null || return 0
    [[ $(dpkg-query -W -f='${Status}\n' 'libstdc++-*-dev' 2>/dev/null || true) == *" installed"* ]] || need_packages g++
}

# build_programs [NAME…]: builds these programs, or all of them, and sets `programs` to the directory that they are in.
build_programs() {
    local name
    need_static_libraries
    programs=$(swift build --package-path "$root" -c release --show-bin-path)
    if ((! $#)); then
        say "swift build -c release"
        swift build --package-path "$root" -c release
        return
    fi
    for name in "$@"; do
        say "swift build -c release --product $name"
        swift build --package-path "$root" -c release --product "$name"
    done
}
