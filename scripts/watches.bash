# The rows of scripts/bench about watches. Sourced, not run.
#
# watch100: 100 subscribers on one thread and a writer that sets 500 values a second; each value carries the time at which it
# was sent. Ours is STATE.WATCH of a prefix, delivered once the value is synced; Redis's is SUBSCRIBE and PUBLISH, which stores
# nothing. The client is the same code for both.
#
# watchstored: the same where Redis sets a key too and so syncs, as ours does, before it delivers.
#
# watchetcd: the same beside etcd, 100 values a second: 500 are more than it delivers here, and what was measured then would
# be how long its queue grew. Its own protocol is gRPC; this is its JSON gateway (POST /v3/watch and /v3/kv/put, HTTP/1.1
# over TCP), which costs it more than gRPC does. Its data is on the same file system.
#
# watch1000: what a SET costs with 1,000 watches on as many prefixes and connections, beside what it costs with one.
# What is set is below none of them, or below the first; once with all the watches on one connection.

# Its clients' port, and the next is for its peers: nobody else's, as far as that can be known.
etcd_port=$((20000 + 2 * (BASHPID % 5000)))

start_etcd() {
    local data=$directory/etcd since=$SECONDS peer=http://127.0.0.1:$((etcd_port + 1))
    local own=http://127.0.0.1:$etcd_port
    etcd --data-dir "$data" --listen-client-urls "$own" --advertise-client-urls "$own" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
        --initial-cluster "default=$peer" >>"$directory/etcd.log" 2>&1 &
    pids[etcd]=$!
    until ETCDCTL_API=3 etcdctl --endpoints "$own" endpoint health >/dev/null 2>&1; do
        [[ -d /proc/${pids[etcd]} ]] || fail "etcd ended: $(tail -n 3 "$directory/etcd.log")"
        ((SECONDS - since < 60)) || fail "etcd does not answer: $(tail -n 3 "$directory/etcd.log")"
        sleep 0.1
    done
}

# delivery ROW SERVER RATE
delivery() {
    local out place server=$2
    case $2 in
    etcd)
        start_etcd
        place=(--port "$etcd_port")
        ;;
    *) place=(--socket "${sockets[$2]}") ;;
    esac
    case $1:$2 in
    watchstored:redis) server=redis-stored ;;
    *:former) server=stated ;;
    esac
    out=$(statebench delivery --server "$server" "${place[@]}" --watchers 100 --rate "$3" \
        --seconds $((share > 1 ? 2 : 10)) --value-bytes 64) || fail "$2 did not deliver"
    [[ $2 != etcd ]] || stop etcd
    keep "$1" "$2" "$(value delivery_p99_us <<<"$out")"
    keep "$1p50" "$2" "$(value delivery_p50_us <<<"$out")"
}

# watched one|stated|former: 1 watcher, or 1,000; `one` is of the same server as `stated`.
watched() {
    local count=1
    [[ $1 == one ]] || count=1000
    watched_load "$1" "$count" 1 $((10000 / share)) none
    watched_load "$1" "$count" 1 $((10000 / share)) one --watched
    watched_load "$1" "$count" 50 $((200000 / share)) none
    watched_load "$1" "$count" 50 $((200000 / share)) one --watched
    watched_load "$1" "$count" 50 $((200000 / share)) same --watched --watch-connections 1
}

# watched_load one|stated|former WATCHERS CLIENTS REQUESTS none|one|same OPTION…
watched_load() {
    local row=watch1000x$3$5 column=$1 watchers=$2 clients=$3 requests=$4 out server=${1/one/stated}
    shift 5
    out=$(statebench load --socket "${sockets[$server]}" --pid "${pids[$server]}" --clients "$clients" \
        --keys 1000 --value-bytes 64 --requests "$requests" --watchers "$watchers" "$@") || fail "no load"
    keep "$row" "$column" "$(value per_second <<<"$out")"
    keep "${row}cpu" "$column" "$(value server_us <<<"$out")"
}
