# The rows of scripts/bench about keys of a cluster: scripts/bench --rows cluster. Sourced, not run.
#
# Three members of etcd, and two daemons with a link each: a at the first member, b at the second; and two more of another
# prefix, whose rule has durability "synced". Everything is on this
# machine and on one file system, so all of it shares the processors; what etcd alone is measured with are keys that no daemon
# has a copy of. Etcd is reached by gRPC, with the client that the link has (statebench etcd).
#
# clusterset: 50 clients of daemon a that SET, beside the same clients straight at its member: 50 connections with one put
# under way on each. Then beside 50 streams on one connection, which is how one program would do it; and beside guarded ones:
# transactions that compare a key and put a signature too, which is what each change would be if the daemon sent it alone.
#
# clusterwatch: a writer at a, 100 values a second, each with the time at which it was sent, and a watch at b; beside a put
# at the first member and etcd's watch at the second; clusterwatchguarded: beside guarded puts, as above. clustersynced: the
# same with durability "synced".
#
# clusterget: GETs of keys below the prefix beside GETs of keys of the same daemon that are not of the cluster, by redis-benchmark.
#
# clusterwatchers: how many watchers the member of daemon a has, by its own metrics, while 1,000 clients of a watch
# prefixes below that of the cluster, beside how many it has without them.

cluster_table='
clusterset | SET, 50 clients; plain puts              | /s |    |
clustersetp50 | the same: p50                         | us |    |
clustersetp99 | the same: p99                         | us |    |
clusterstreams | SET; puts on 1 connection, 50 streams | /s |   |
clusterguarded | SET; guarded puts one by one         | /s | >= | 2
clusterwatch | a watch on another node: p50           | us | <= | 1.5
clusterwatchp99 | the same: p99                       | us |    |
clusterwatchguarded | the same: p50; guarded puts     | us |    |
clustersynced | with durability "synced": p50         | us |    |
clustersyncedp99 | the same: p99                      | us |    |
'
local_table='
clusterget | GET, 50 clients                          | /s | >= | 0.95
clustergetp16 | GET, 50 clients, pipeline 16          | /s | >= | 0.95
'
watchers_table='
clusterwatchers | watchers at etcd                    |    | <= | 1
'
cluster_keys=10000

cluster_rows() {
    local turn way
    describe_hardware
    start_cluster
    for ((turn = 1; turn <= turns; turn++)); do
        say "keys of a cluster, turn $turn of $turns"
        for way in $(in_turn "$turn" "etcd streams guarded"); do cluster_steal clusterset cluster_sets "$way"; done
        for way in $(in_turn "$turn" "etcd guarded synced"); do cluster_steal clusterwatch cluster_delivery "$way"; done
        for way in $(in_turn "$turn" local); do
            cluster_steal clusterget cluster_gets clusterget "$way" 1 $((500000 / share))
            cluster_steal clustergetp16 cluster_gets clustergetp16 "$way" 16 $((1500000 / share))
        done
        cluster_watchers
    done
    end_cluster
    say "keys of a cluster: medians of $turns turns"
    print_rows etcd 'etcd, gRPC' stated "$cluster_table"
    print_rows local 'own keys' "cluster's" "$local_table"
    print_rows none 'no watcher' '1,000' "$watchers_table"
}

# cluster_steal ROW COMMAND…
cluster_steal() {
    local steal row=$1
    shift
    sync
    steal=$(processor_time)
    "$@"
    keep "$row" steal "$(stolen_since "$steal")"
}

# The servers

member() { printf 'http://127.0.0.1:%d' $((etcd_port + 2 * $1 - 2)); }
member_peer() { printf 'http://127.0.0.1:%d' $((etcd_port + 2 * $1 - 1)); }

start_cluster() {
    local n members node
    members="m1=$(member_peer 1),m2=$(member_peer 2),m3=$(member_peer 3)"
    say "three members of etcd, four daemons, four links"
    for n in 1 2 3; do
        etcd --name "m$n" --data-dir "$directory/member$n" --log-level error --pre-vote \
            --listen-client-urls "$(member $n)" --advertise-client-urls "$(member $n)" \
            --listen-peer-urls "$(member_peer $n)" --initial-advertise-peer-urls "$(member_peer $n)" \
            --initial-cluster "$members" >"$directory/member$n.log" 2>&1 &
        pids["member$n"]=$!
    done
    for n in 1 2 3; do
        until_done "member $n" etcdctl --endpoints "$(member $n)" --command-timeout=2s endpoint health
    done
    for node in a:1 b:2; do start_node "${node%:*}" "${node#*:}" app/ interval; done
    for node in c:1 d:2; do start_node "${node%:*}" "${node#*:}" synced/ synced; done
    for node in a b c d; do until_done "the copy of node $node" is_current $node; done
    printf '%s, %s; the leader is member %s, the daemons are at members 1 and 2\n' \
        "$(etcd --version | sed -n '1s/.*: /etcd /p')" "$("$programs/stated" --version)" "$(leader)"
    printf '64-byte values, %s keys, %d turns\n' "$(grouped "$cluster_keys")" "$turns"
    statebench fill --socket "${sockets[a]}" --folder own/ --keys "$cluster_keys" --value-bytes 64 >/dev/null
    # By more clients than a batch holds: the commands of one connection go one by one.
    statebench fill --socket "${sockets[a]}" --folder app/ --keys "$cluster_keys" --value-bytes 64 \
        --clients 100 --pipeline 1 >/dev/null
}

# start_node NAME MEMBER PREFIX DURABILITY
start_node() {
    printf '{ cluster: { user: "%d", node: "%s" }, rules: [{ keys: "%s", backing: "cluster", durability: "%s" }] }\n' \
        "$EUID" "$1" "$3" "$4" >"$directory/$1.json5"
    sockets[$1]=$directory/$1.sock
    launch "$1" "$programs/stated" --config "$directory/$1.json5" --socket "${sockets[$1]}" --data "$directory/data-$1"
    "$programs/stated-etcd" --endpoints "$(member "$2")" --socket "${sockets[$1]}" >"$directory/link-$1.log" 2>&1 &
    pids["link-$1"]=$!
}

is_current() { "$programs/statectl" --socket "${sockets[$1]}" status | grep -q '^cluster: *current'; }

# The number of the member that leads.
leader() {
    local n
    for n in 1 2 3; do
        [[ $(metric "$n" etcd_server_is_leader) != 1 ]] || printf '%s' "$n"
    done
}

# until_done WHAT COMMAND…: runs it until it succeeds.
until_done() {
    local what=$1 since=$SECONDS
    shift
    until ETCDCTL_API=3 "$@" >/dev/null 2>&1; do
        ((SECONDS - since < 60)) || fail "$what does not come: $(tail -qn 3 "$directory"/*.log)"
        sleep 0.1
    done
}

end_cluster() {
    local name
    for name in link-a link-b link-c link-d a b c d member1 member2 member3; do
        kill -TERM "${pids[$name]}"
        wait "${pids[$name]}" 2>/dev/null || true
        unset "pids[$name]"
    done
}

# metric MEMBER NAME: its value.
metric() {
    local line
    exec 9<>"/dev/tcp/127.0.0.1/$((etcd_port + 2 * $1 - 2))"
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&9
    while read -r line; do
        [[ $line != "$2 "* ]] || printf '%s' "${line##* }" | tr -d '\r'
    done <&9
    exec 9>&-
}

# Measuring

# cluster_sets etcd|streams|guarded|stated
cluster_sets() {
    local requests=$((20000 / share)) out times from
    case $1 in
    etcd) from=(etcd --endpoint "$(member 1)" --folder beside/ --connections 50) ;;
    streams) from=(etcd --endpoint "$(member 1)" --folder beside/ --connections 1 --streams 50) ;;
    guarded) from=(etcd --endpoint "$(member 1)" --folder beside/ --connections 50 --guarded) ;;
    stated) from=(load --socket "${sockets[a]}" --folder app/ --op set --clients 50) ;;
    esac
    times=$({ time statebench "${from[@]}" --keys "$cluster_keys" --value-bytes 64 --requests "$requests" \
        --seed "$turn" >"$directory/load"; } 2>&1) || fail "$times"
    out=$(<"$directory/load")
    case $1 in
    streams | guarded) keep "cluster$1" etcd "$(value per_second <<<"$out")" ;;
    *)
        keep clusterset "$1" "$(value per_second <<<"$out")"
        keep clustersetp50 "$1" "$(value write_p50_us <<<"$out")"
        keep clustersetp99 "$1" "$(value write_p99_us <<<"$out")"
        keep clusterset "client-$1" "$(client_share "$times")"
        ;;
    esac
    if [[ $1 == stated ]]; then
        keep clusterstreams stated "$(value per_second <<<"$out")"
        keep clusterguarded stated "$(value per_second <<<"$out")"
    fi
    printf '%-14s %-7s %9s /s  p50 %8s us  p99 %8s us  client %.0f %%\n' SET "$1" "$(value per_second <<<"$out")" \
        "$(value write_p50_us <<<"$out")" "$(value write_p99_us <<<"$out")" "$(client_share "$times")"
}

# cluster_delivery etcd|guarded|stated|synced
cluster_delivery() {
    local out name from p50 p99
    case $1 in
    etcd) from=(etcd --endpoint "$(member 1)" --watch-endpoint "$(member 2)" --folder beside/) ;;
    guarded) from=(etcd --endpoint "$(member 1)" --watch-endpoint "$(member 2)" --folder beside/ --guarded) ;;
    stated) from=(delivery --socket "${sockets[a]}" --watch-socket "${sockets[b]}" --folder app/ --watchers 1) ;;
    synced) from=(delivery --socket "${sockets[c]}" --watch-socket "${sockets[d]}" --folder synced/ --watchers 1) ;;
    esac
    out=$(statebench "${from[@]}" --rate 100 --seconds $((share > 1 ? 2 : 10)) --value-bytes 64) ||
        fail "$1 did not deliver"
    p50=$(value delivery_p50_us <<<"$out")
    p99=$(value delivery_p99_us <<<"$out")
    for name in watch synced; do
        case $1:$name in
        etcd:*) keep "cluster$name" etcd "$p50"; keep "cluster${name}p99" etcd "$p99" ;;
        stated:watch | synced:synced) keep "cluster$name" stated "$p50"; keep "cluster${name}p99" stated "$p99" ;;
        esac
    done
    [[ $1 != guarded ]] || keep clusterwatchguarded etcd "$p50"
    [[ $1 != stated ]] || keep clusterwatchguarded stated "$p50"
    printf '%-14s %-8s p50 %8s us  p99 %8s us\n' watch "$1" "$p50" "$p99"
}

# cluster_gets ROW local|stated PIPELINE REQUESTS
cluster_gets() {
    local folder=app/ rate times
    [[ $2 == stated ]] || folder=own/
    times=$({ time redis-benchmark -s "${sockets[a]}" -n "$4" -r "$cluster_keys" -c 50 -P "$3" --csv \
        GET "${folder}key:__rand_int__" >"$directory/csv" 2>"$directory/complaints"; } 2>&1) ||
        fail "redis-benchmark: $(<"$directory/complaints")"
    rate=$(awk -F'","' 'END { print $2 }' "$directory/csv")
    [[ $rate == *[0-9]* ]] || fail "redis-benchmark printed no rate: $(<"$directory/complaints")"
    keep "$1" "$2" "$rate"
    keep "$1" "client-$2" "$(client_share "$times")"
    printf '%-14s %-7s %9.0f /s\n' "$1" "$2" "$rate"
}

cluster_watchers() {
    local line watching
    keep clusterwatchers none "$(metric 1 etcd_debugging_mvcc_watcher_total)"
    coproc WATCHES { exec "$programs/statebench" watches --socket "${sockets[a]}" --folder app/ --watchers 1000; }
    watching=$WATCHES_PID
    pids[watches]=$watching
    read -r -t 60 line <&"${WATCHES[0]}" || fail "1,000 watches were not made"
    keep clusterwatchers stated "$(metric 1 etcd_debugging_mvcc_watcher_total)"
    kill -TERM "$watching"
    wait "$watching" 2>/dev/null || true
    unset 'pids[watches]'
    printf '%s: %s at etcd, without them %s\n' "$line" "${results[clusterwatchers:stated]##* }" \
        "${results[clusterwatchers:none]##* }"
}
