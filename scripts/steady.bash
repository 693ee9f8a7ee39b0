# scripts/bench --steady: stores whose history is full, beside Redis. Sourced, not run.
#
# All stores stay for all turns, and are filled once: each key in order, then --fill SETs at random, 50 clients, pipeline 16.
#   redis        Redis, filled like the others
#   redismillion Redis with 1,000,000 keys, for what is measured on `million`
#   steady       stated with the default retention, which the fill has reached
#   none         stated that keeps no history
#   million      stated with 1,000,000 keys
#   fresh        stated with the keys and no more: a new directory for each row, or its history would fill too
#   limit        a bare C loop that receives, appends a frame to a preallocated file, syncs it and answers: scripts/limit.c
#
# Long values and the bytes of many SETs are measured in the first turn only, the values on stores that are new (fresh, redisfresh).
#
# In a turn each row is measured on one store after the other, in the next turn in reverse order, so that a machine whose
# speed drifts is as unkind to all. A ratio is the median of the turns' ratios, not the ratio of the medians.
#
# Bytes are those that the device has written, by /proc/diskstats, from one sync to the next, with what the server writes after
# the last answer: /proc/PID/io counts whole folios. It counts for all processes, so nothing else may write meanwhile.
#
# A disk whose bytes per second are limited, as those of virtual machines are, is fast for some time and then slow: what is
# said at the end of Redis between the turns shows it.
#
# --quick keeps 100,000 changes, so that a tenth of the fill reaches the retention too.

steady=
steady_options=()
filled=3000000
keys=100000
minutes=0
plot=
steady_works='set50 set50p16 get50 get50p16 mixed set1 pinned restart stopped'
# In the first turn, too: they take long, or leave much behind.
first_works='many1k many64k many8m many50'

# group | name | stores | what is measured | unit | at least or at most | the wanted ratio, or with a unit the wanted amount
# A store is measured beside Redis; STORE@limit beside the bare loop.
steady_table='
Throughput
set50.rate    | steady fresh none million | SET, 50 clients              | /s | >= | 1.7
set50p16.rate | steady fresh none         | SET, 50 clients, pipeline 16 | /s | >= | 1.8
set50p16.rate | million                   | SET, 50 clients, pipeline 16 | /s | >= | 1.5
get50.rate    | steady fresh              | GET, 50 clients              | /s | >= | 1.15
get50p16.rate | steady fresh              | GET, 50 clients, pipeline 16 | /s | >= | 1.5
Latency of writes
set50.p99     | steady fresh million      | SET, 50 clients, p99              | us | <= | 0.7
set50.p99     | none                      | SET, 50 clients, p99              | us | <= | 0.8
set50p16.p99  | steady fresh million      | SET, 50 clients, pipeline 16, p99 | us | <= | 0.6
set50p16.p99  | none                      | SET, 50 clients, pipeline 16, p99 | us | <= | 0.8
mixed.p99     | steady fresh              | 20 % SET, 50 clients, p99         | us | <= | 1.2
set50.p999    | steady fresh              | SET, 50 clients, p99.9            | us | <= | 1.0
set50.max     | steady fresh none million | SET, 50 clients, longest          | us |    |
set50p16.max  | steady fresh none million | SET, 50 clients, pipeline 16, longest | us |    |
Processor time of the server per SET
set50.cpu     | steady fresh none million | SET, 50 clients              | us |    |
set50p16.cpu  | steady fresh none million | SET, 50 clients, pipeline 16 | us |    |
Bytes written to the disk per SET
many50.bytes  | steady  | 3,000,000 SETs, 50 clients  | B  | <= | 450 B
many50.bytes  | million | 3,000,000 SETs, 50 clients  | B  | <= | 950 B
set1.bytes    | steady  | SET, 1 client               | B  | <= | 4900 B
many1k.bytes  | fresh   | SET of 1 KB, 50 clients     | KB |    |
many64k.bytes | fresh   | SET of 64 KB, 8 clients     | KB |    |
many8m.bytes  | fresh   | SET of 8 MB, 1 client       | KB |    |
Long values
many1k.rate   | fresh | SET of 1 KB, 50 clients | /s | |
many64k.rate  | fresh | SET of 64 KB, 8 clients | /s | |
many8m.rate   | fresh | SET of 8 MB, 1 client   | /s | |
Restart after SIGKILL
restart.ms    | steady | until the first PING        | ms | <= | 2.5
restart.ms    | fresh  | until the first PING        | ms |    |
restart.ms    | million | until the first PING       | ms | <= | 1.0
stopped.ms    | steady | the same after a clean stop | ms | <= | 1.2
restart.rss   | steady | resident memory after it    | MB | <= | 1.0
restart.rss   | fresh  | resident memory after it    | MB | <= | 1.0
One client
set1.rate     | steady | SET, 1 client                    | /s | >= | 1.3
set1.cpu      | steady | the same: server CPU of each     | us | <= | 0.9
pinned.rate   | steady | both on one processor            | /s | >= | 1.3
pinned.cpu    | steady | the same: server CPU of each     | us |    |
Beside a bare C loop without a keyspace
set1.rate     | steady@limit redis@limit | SET, 1 client                | /s | |
set50.rate    | steady@limit redis@limit | SET, 50 clients              | /s | |
set50p16.rate | steady@limit redis@limit | SET, 50 clients, pipeline 16 | /s | |
'

read_steady_options() {
    if [[ -z $steady ]]; then
        ((${#steady_options[@]} == 0)) || fail "${steady_options[0]} is an option of --steady"
        return 0
    fi
    set -- "${steady_options[@]}"
    while (($#)); do
        [[ $1 == --plot || $2 =~ ^[1-9][0-9]{0,8}$ ]] || fail "$1 needs a number, not '$2'"
        case $1 in
        --fill) filled=$2 ;;
        --keys) keys=$2 ;;
        --minutes) minutes=$2 ;;
        --plot) plot=$2 ;;
        esac
        shift 2
    done
    if [[ -n $plot ]]; then
        ((minutes > 0)) || minutes=10
        [[ -d $(dirname "$plot") ]] || fail "there is no directory for $plot"
    fi
    rows=steady
    turns=${turns:-5}
    [[ $turns =~ ^[0-9]+$ ]] || fail "--turns needs a number, not '$turns'"
    ((turns > 0 || minutes > 0)) || fail "--turns 0 needs --minutes or --plot"
}

steady_rows() {
    local turn store
    disk=$(findmnt --noheadings --output MAJ:MIN --target "$directory" | tr -d ' ')
    written >/dev/null
    say "$(grouped $((filled / share))) SETs before anything is measured"
    ((turns == 0)) || for store in redis redismillion none million; do fill_store "$store"; done
    fill_store steady
    start_limit
    for ((turn = 1; turn <= turns; turn++)); do steady_turn "$turn"; done
    ((turns == 0)) || for store in redis redismillion none million limit; do stop "$store"; done
    ((turns == 0)) || print_steady
    ((minutes == 0)) || long_load
    stop steady
}

# The stores

# start_store STORE [PREFIX…]: in its directory of the last time, if there is one.
start_store() {
    local store=$1 command
    shift
    case $store in
    redis*) command_of redis "$store" "$directory/$store" ;;
    *) command_of stated "$store" "$directory/$store" ;;
    esac
    case $store in
    redis*) ;;
    limit) command=("$directory/bare-loop" "${sockets[limit]}" "$directory/limit/file") ;;
    none) command+=(--history-changes 0) ;;
    *) ((share == 1)) || command+=(--history-changes 100000) ;;
    esac
    launch "$store" "$@" "${command[@]}"
}

start_limit() {
    ((turns > 0)) || return 0
    # The toolchain of Swift brings a compiler of C.
    clang -O2 -msse4.2 -o "$directory/bare-loop" "$root/scripts/limit.c" ||
        clang -O2 -o "$directory/bare-loop" "$root/scripts/limit.c" || fail "scripts/limit.c was not built"
    start_store limit
}

fill_store() {
    local rate
    start_store "$1"
    fill "$1" "$(keys_of "$1")"
    rate=$(statebench load --socket "${sockets[$1]}" --clients 50 --pipeline 16 --keys "$(keys_of "$1")" --value-bytes 64 \
        --requests $((filled / share)) --seed 7 | value per_second) || fail "$1 was not filled"
    settle "$1"
    printf '%-12s %9.0f /s, then %s MB on disk\n' "$1" "$rate" "$(megabytes "$(stored "$1")")"
}

# start_fresh, end_fresh STORE
start_fresh() { start_store "$1" && fill "$1" "$keys"; }

end_fresh() { stop "$1" && rm -rf "${directory:?}/$1"; }

keys_of() { case $1 in *million) printf 1000000 ;; *) printf '%s' "$keys" ;; esac; }

# Bytes on the disk, of files that may go meanwhile.
stored() { { du -s --block-size=1 "$directory/$1" 2>/dev/null || true; } | awk '{ print $1 }'; }

# Until it has ended what it does after its last answer.
settle() {
    local before after=-1000000 tries
    [[ $1 != redis* ]] || wait_for_rewrite "$1"
    for ((tries = 0; tries < 50; tries++)); do
        before=$after after=$(server_time "$1")
        ((after - before > 10000)) || return 0
        sleep 0.2
    done
}

# How much of the log of a store is not settled, in MB: one that falls behind would look fast.
backlog_of() {
    case $1 in redis* | limit) return 0 ;; esac
    "$programs/statectl" --socket "${sockets[$1]}" metrics | awk '/^stated_unsettled_bytes / { printf "%.1f", $2 / 1e6 }'
}

# Bytes that the device has written since the machine started; its sectors are of 512 bytes.
written() {
    awk -v disk="$disk" '$1 ":" $2 == disk { print $10 * 512; found = 1 } END { exit !found }' OFMT=%.0f /proc/diskstats ||
        fail "/proc/diskstats has no device $disk, that of $directory; use --directory"
}

# One turn

steady_turn() {
    local work store
    say "turn $1 of $turns"
    local works=$steady_works
    (($1 > 1)) || works+=" $first_works"
    for work in $works; do
        for store in $(stores_of "$work" "$1"); do
            [[ $store != *fresh ]] || start_fresh "$store"
            case $work in
            restart | stopped) steady_restart "$work" "$store" "$1" ;;
            pinned)
                stop "$store"
                start_store "$store" taskset -c 0
                steady_load "$work" "$store" "$1"
                stop "$store"
                start_store "$store"
                ;;
            *) steady_load "$work" "$store" "$1" ;;
            esac
            [[ $store != *fresh ]] || end_fresh "$store"
        done
    done
}

# stores_of WORK TURN: in the order of this turn.
stores_of() {
    local stores='redis steady'
    case $1 in
    set50*) stores='redis steady fresh none redismillion million limit' ;;
    set1) stores='redis steady limit' ;;
    many50) stores='redis steady redismillion million' ;;
    many*) stores='redisfresh fresh' ;;
    get* | mixed) stores='redis steady fresh' ;;
    restart) stores='redis steady fresh redismillion million' ;;
    esac
    if (($2 % 2)); then xargs -n 1 <<<"$stores"; else xargs -n 1 <<<"$stores" | tac; fi
}

# steady_load WORK STORE TURN
steady_load() {
    local work=$1 store=$2 client=() options requests out steal before backlog bytes=64 keys=$(keys_of "$2")
    case $work in
    set50) requests=150000 options=(load --op set --clients 50) ;;
    set50p16) requests=600000 options=(load --op set --clients 50 --pipeline 16) ;;
    get50) requests=500000 options=(load --op get --clients 50) ;;
    get50p16) requests=2000000 options=(load --op get --clients 50 --pipeline 16) ;;
    mixed) requests=150000 options=(mixed --writes 20 --clients 50) ;;
    set1) requests=6000 options=(load --op set --clients 1) ;;
    pinned) requests=6000 options=(load --op set --clients 1) client=(taskset -c 0) ;;
    many50) requests=$filled options=(load --op set --clients 50) ;;
    many1k) requests=200000 options=(load --op set --clients 50) bytes=1024 ;;
    many64k) requests=8000 options=(load --op set --clients 8) bytes=65536 keys=200 ;;
    many8m) requests=60 options=(load --op set --clients 1) bytes=$((8 << 20)) keys=4 ;;
    esac
    requests=$((requests / share))
    [[ ${options[0]} != load ]] || options+=(--pid "${pids[$store]}")
    settle "$store"
    sync
    steal=$(processor_time)
    before=$(written)
    out=$("${client[@]}" "$programs/statebench" "${options[@]}" --socket "${sockets[$store]}" --keys "$keys" \
        --value-bytes "$bytes" --requests "$requests" --seed "$3") || fail "no $work on $store: $(tail -n 3 "$directory/$store.log")"
    keep steady steal "$(stolen_since "$steal")"
    backlog=$(backlog_of "$store")
    settle "$store"
    sync
    keep "$work.bytes" "$store" "$(quotient $(($(written) - before)) $((requests * (bytes > 64 ? 1000 : 1))))"
    keep "$work.rate" "$store" "$(value per_second <<<"$out")"
    keep "$work.p99" "$store" "$(value write_p99_us <<<"$out")"
    keep "$work.p999" "$store" "$(value write_p999_us <<<"$out")"
    keep "$work.max" "$store" "$(value write_max_us <<<"$out")"
    keep "$work.cpu" "$store" "$(value server_us <<<"$out")"
    awk -v work="$work" -v store="$store" -v backlog="$backlog" '
        { found[$1] = $2 }
        END { printf "%-9s %-12s %9.0f /s  write p99 %8.0f us, p99.9 %8.0f us, longest %8.0f us  server %7.2f us%s\n", work, store,
            found["per_second"], found["write_p99_us"], found["write_p999_us"], found["write_max_us"], found["server_us"],
            backlog == "" ? "" : "  not settled " backlog " MB" }' <<<"$out"
}

# steady_restart restart|stopped STORE TURN: of Redis once its log is rewritten; of stated as it is after writes, if it is killed.
steady_restart() {
    local work=$1 store=$2
    if [[ $store != fresh ]]; then
        statebench load --socket "${sockets[$store]}" --clients 50 --pipeline 16 --keys "$(keys_of "$store")" --value-bytes 64 \
            --requests $((100000 / share)) --seed $((1000 + $3)) >/dev/null || fail "no load on $store"
    fi
    if [[ $store == redis* ]]; then
        wait_for_rewrite "$store"
        redis-cli -s "${sockets[$store]}" bgrewriteaof >/dev/null
        wait_for_rewrite "$store"
    fi
    settle "$store"
    sync
    if [[ $work == stopped ]]; then
        stop "$store"
    else
        {
            kill -KILL "${pids[$store]}"
            wait "${pids[$store]}" || true
        } 2>/dev/null
    fi
    start_store "$store"
    keep "$work.ms" "$store" "$ready_ms"
    # Both give memory back on a timer.
    sleep 1
    keep "$work.rss" "$store" "$(resident "$store")"
    printf '%-9s %-12s %9.1f ms  %8.1f MB\n' "$work" "$store" "$ready_ms" "$(resident "$store")"
}

# Minutes of full load

# Runs of some seconds each; the lines of the file are: end, length, SETs, write p99, bytes on disk, resident bytes.
long_load() {
    local data=$directory/minutes length=5 requests=500000 seed=100 began now since out rate
    ((minutes >= 3)) || length=2
    say "full load on stated alone for $minutes minutes: 50 clients, pipeline 16"
    settle steady
    sync
    began=${EPOCHREALTIME/./}
    now=$began
    while ((now - began < minutes * 60000000)); do
        since=$now
        out=$(statebench load --socket "${sockets[steady]}" --clients 50 --pipeline 16 --keys "$keys" --value-bytes 64 \
            --requests "$requests" --seed $((seed++))) || fail "no load: $(tail -n 3 "$directory/steady.log")"
        now=${EPOCHREALTIME/./}
        rate=$(value per_second <<<"$out")
        printf '%s %s %s %s %s %s\n' "$(quotient $((now - began)) 1000000)" "$(quotient "$requests" "$rate")" "$requests" \
            "$(value write_p99_us <<<"$out")" "$(stored steady)" \
            "$(statebench sample --pid "${pids[steady]}" | value rss_bytes)" >>"$data"
        requests=$((rate * length))
    done
    long_verdict "$data"
    [[ -z $plot ]] || draw "$data" >"$plot"
}

# Its second minute and its last; of less than three minutes, quarters.
long_verdict() {
    awk -v minutes="$minutes" '
        { end[NR] = $1; seconds[NR] = $2; sets[NR] = $3 }
        { slowest = $4 > slowest ? $4 : slowest; bytes = $5 > bytes ? $5 : bytes; resident = $6 > resident ? $6 : resident }
        function rate(from, to,    i, n, t) {
            for (i = 1; i <= NR; i++) {
                middle = end[i] - seconds[i] / 2
                if (middle >= from && middle < to) { n += sets[i]; t += seconds[i] }
            }
            return t ? n / t : 0
        }
        END {
            span = minutes >= 3 ? 60 : minutes * 15
            name = minutes >= 3 ? "minute" : "quarter"
            second = rate(span, 2 * span)
            last = rate(end[NR] - span, end[NR])
            if (!second || !last) exit 1
            ratio = last / second
            printf "\n| work | second %s | last %s | ratio | wanted | verdict |\n|---|---:|---:|---:|---:|---|\n", name, name
            printf "| SET, 50 clients, pipeline 16, for %d min | %.0f /s | %.0f /s | %.3f | >= 0.97 | %s |\n", minutes,
                second, last, ratio, (ratio < 0.97 ? "MISSED" : "ok")
            printf "\nAt most %.1f MB on disk, %.1f MB of memory, and a write p99 of %.1f ms (%d runs)\n", bytes / 1e6,
                resident / 1e6, slowest / 1000, NR
        }' "$1" || fail "the runs are too long for $minutes minutes"
}

# draw FILE: a picture of the lines of long_load, as SVG.
draw() {
    awk -v keys="$(grouped "$keys")" '
        { x[NR] = $1 / 60; y[1, NR] = $3 / $2 / 1000; y[2, NR] = $4 / 1000; y[3, NR] = $5 / 1e6 }
        # The step of at most six that are 1, 2 or 5 times a power of ten.
        function step(top,    power) {
            power = 10 ^ int(log(top / 6) / log(10) - 1)
            while (power * 10 < top / 6) power *= 10
            return power * (power >= top / 6 ? 1 : power * 2 >= top / 6 ? 2 : power * 5 >= top / 6 ? 5 : 10)
        }
        function text(x, y, more, what) { printf "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, more, what }
        function line(x1, y1, x2, y2, colour) {
            printf "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, colour
        }
        function panel(number, title, colour,    top, bottom, most, by, i, at) {
            top = 64 + (number - 1) * 190
            bottom = top + 140
            for (i = 1; i <= NR; i++) most = y[number, i] > most ? y[number, i] : most
            by = step(most ? most : 1)
            most = by * (int(most / by) + 1)
            text(left, top - 10, "font-weight=\"bold\"", title)
            for (i = 0; i <= most / by + 0.001; i++) {
                at = bottom - 140 * i * by / most
                line(left, at, right, at, i ? "#ddd" : "#333")
                text(left - 8, at + 4, "text-anchor=\"end\"", sprintf("%.10g", i * by))
            }
            by = step(x[NR])
            for (i = 0; i * by <= x[NR] + 0.001; i++) {
                at = left + (right - left) * i * by / x[NR]
                line(at, bottom, at, bottom + 4, "#333")
                text(at, bottom + 17, "text-anchor=\"middle\"", sprintf("%.10g", i * by))
            }
            line(left, top, left, bottom, "#333")
            printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour
            for (i = 1; i <= NR; i++)
                printf "%.1f,%.1f ", left + (right - left) * x[i] / x[NR], bottom - 140 * y[number, i] / most
            print "\"/>"
        }
        END {
            left = 70; right = 780
            print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"640\" viewBox=\"0 0 800 640\""
            print "  font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">"
            print "<rect width=\"800\" height=\"640\" fill=\"#fff\"/>"
            text(left, 24, "font-size=\"15\" font-weight=\"bold\"", \
                "stated under full load, history full: 50 clients, pipeline 16, " keys " keys, 64-byte values")
            panel(1, "throughput, thousand SETs per second", "#1f6fb4")
            panel(2, "latency of writes, p99, ms", "#c2571a")
            panel(3, "data directory on disk, MB", "#2e8540")
            text((left + right) / 2, 632, "text-anchor=\"middle\"", "time, minutes")
            print "</svg>"
        }' "$1"
}

# Printing

# 1234567 as 1,234,567.
grouped() { sed -e ':again' -e 's/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/' -e 't again' <<<"$1"; }

megabytes() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1e6 }'; }

print_steady() {
    local name stores title unit direction wanted store
    say "medians of $turns turns; a ratio is the median of those of the turns"
    while IFS='|' read -r name stores title unit direction wanted; do
        if [[ -z $stores ]]; then
            [[ -z $name ]] || print_heading "$name"
            continue
        fi
        for store in $stores; do
            print_steady_row "${name// /}" "$store" "$(xargs <<<"$title")" "${unit// /}" "${direction// /}" "$(xargs <<<"$wanted")"
        done
    done <<<"$steady_table"
    printf '\nShare of processor time that a hypervisor gave to others: median %.1f %%, at most %.1f %%\n' \
        "$(median "${results[steady:steal]}")" "$(tr ' ' '\n' <<<"${results[steady:steal]}" | sort -g | tail -n 1)"
    print_unevenness
}

# Where Redis itself was not the same in one turn as in another, the machine or its disk was not, and the row says little.
print_unevenness() {
    local row
    for row in set50.rate set50p16.rate get50.rate get50p16.rate mixed.rate set1.rate pinned.rate set1.bytes; do
        tr ' ' '\n' <<<"${results[$row:redis]}" | grep . | sort -g |
            awk -v row="$row" -v unit="$([[ $row == *.rate ]] && printf /s || printf B)" '
                NR == 1 { least = $1 }
                END { if ($1 > 1.5 * least) printf "uneven: %s on Redis, from %.0f %s to %.0f %s\n", row, least, unit, $1, unit }'
    done
}

print_heading() {
    printf '\n**%s**\n\n| work | store | beside | measured | ratio | wanted | verdict |\n|---|---|---:|---:|---:|---|---|\n' "$1"
}

# print_steady_row NAME STORE TITLE UNIT DIRECTION WANTED
print_steady_row() {
    local other=redis store=${2%@*} what ratio
    case $store in
    redis) what='Redis' ;;
    steady) what='history full' ;;
    fresh)
        what='new'
        [[ $1 != many* ]] || other=redisfresh
        ;;
    none) what='no history' ;;
    million) what='1,000,000 keys' other=redismillion ;;
    esac
    [[ $2 != *@limit ]] || other=limit
    ratio=$(ratios "${results[$1:$other]}" "${results[$1:$store]}")
    awk -v title="$3" -v what="$what" -v unit="$4" -v direction="$5" -v wanted="$6" -v ratio="$(median "$ratio")" \
        -v other="$(median "${results[$1:$other]}")" -v stated="$(median "${results[$1:$store]}")" '
        function amount(x) { return sprintf("%.*f %s", unit != "/s" && x < 100 ? 2 : 0, x, unit) }
        BEGIN {
            # With a unit, what is wanted is an amount.
            reached = wanted ~ / / ? stated : ratio
            reached = direction == ">=" ? reached >= wanted + 0 : reached <= wanted + 0
            verdict = direction == "" ? "" : reached ? "ok" : "MISSED"
            goal = direction == "" ? "" : direction " " wanted
            printf "| %s | %s | %s | %s | %.3f | %s | %s |\n", title, what, amount(other), amount(stated), ratio, goal, verdict
        }'
}

# ratios THEIRS OURS: of each turn.
ratios() {
    printf '%s\n%s\n' "$1" "$2" |
        awk 'NR == 1 { split($0, other) } NR == 2 { for (i = 1; i <= NF; i++) printf " %s", $i / (other[i] ? other[i] : 1e-9) }'
}
