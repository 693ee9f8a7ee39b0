# `scripts/crash locks`: contenders for one lock, in processes that are killed while they hold it or wait. Sourced, not run.
#
# Each contender runs `statectl lock` again and again. A critical section appends a line with its token at its start and one at
# its end; appends are atomic. Checked: no line of another section between the two, unless the holder was killed, and tokens
# that rise.

# contend NUMBER: runs sections until there are enough of them.
contend() {
    # shellcheck disable=SC2016 # The command has the variables.
    local section='echo "+$STATED_LOCK_TOKEN" >>"$SECTIONS"; echo "-$STATED_LOCK_TOKEN" >>"$SECTIONS"'
    while [[ ! -e $directory/enough ]]; do
        # It fails while the daemon is away, and where it is killed.
        SECTIONS=$directory/sections "$programs/statectl" --socket "$socket" lock crash -- \
            sh -c "$section" || sleep 0.02
        # bash reports a killed command on standard error, too.
    done 2>>"$directory/locks.log"
}

# The holders and waiters that the daemon knows, by process.
contender_pids() {
    "$programs/statectl" --socket "$socket" locks crash --json 2>/dev/null |
        sed -n 's/.*"pid":\([0-9]*\).*/\1/p'
}

locks() {
    local contenders=50 sections=10000 kills=20
    while (($#)); do
        case $1 in
        --seed) seed=${2:?--seed needs a number}; shift ;;
        --contenders) contenders=${2:?--contenders needs a number}; shift ;;
        --sections) sections=${2:?--sections needs a number}; shift ;;
        --kills) kills=${2:?--kills needs a number}; shift ;;
        --directory) directory=${2:?--directory needs a path}; shift ;;
        *) fail "usage: scripts/crash locks [--contenders N] [--sections N] [--kills N] [--seed N] [--directory DIR]" ;;
        esac
        shift
    done
    if [[ -z ${programs-} ]]; then
        need_swift
        need_packages libsqlite3-dev libnghttp2-dev libssl-dev
        build_programs
    fi
    [[ -n $directory ]] || directory=$(mktemp -d)
    mkdir -p "$directory"
    socket=$directory/stated.sock
    RANDOM=$seed
    say "$contenders contenders, $sections sections, $kills kills of the daemon in $directory, seed $seed"
    trap 'touch "$directory/enough"; end_stated KILL' EXIT
    : >"$directory/sections"
    start_stated
    local number pid killed=0 victims=0 done=0 workers=()
    for ((number = 0; number < contenders; number++)); do
        contend "$number" &
        workers+=($!)
    done
    while ((done < sections)); do
        sleep 0.2
        # The holder comes first, then who waits.
        pid=$(contender_pids | sed -n "$((1 + RANDOM % 3))p")
        if [[ -n $pid ]] && kill -KILL "$pid" 2>/dev/null; then ((++victims)); fi
        done=$(grep -c '^-' "$directory/sections" || true)
        if ((killed < kills && done >= (killed + 1) * sections / (kills + 1))); then
            end_stated KILL
            start_stated
            ((++killed))
            say "$done sections, $victims contenders killed, the daemon $killed times"
        fi
    done
    touch "$directory/enough"
    wait "${workers[@]}" || true
    check_sections
    end_stated TERM
    trap - EXIT
    printf '%d sections, %d contenders and %d daemons killed: none overlapped, and tokens rose\n' \
        "$done" "$victims" "$killed"
    rm -rf "$directory"
}

check_sections() {
    awk '
        /^\+/ {
            token = substr($0, 2) + 0
            if (token <= last) { printf "token %d after %d\n", token, last; failed = 1 }
            last = token
            open = token
        }
        /^-/ {
            token = substr($0, 2) + 0
            if (token != open) { printf "the end of %d within %d\n", token, open; failed = 1 }
            open = 0
        }
        END { exit failed }
    ' "$directory/sections" || broken "sections overlapped, or tokens fell: $directory/sections"
}
