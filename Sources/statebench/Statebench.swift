import CLinux
import Glibc

/// Load, measurements and crash checks for `stated`; commands that Redis has also run against
/// Redis.
@main
enum Statebench {
    static let usage = """
        usage: statebench COMMAND [options]

        load     throughput of one kind of request, closed loop
        mixed    reads and writes, one request in flight per client: percentiles of each
        fill     sets the keys 0 to N-1 once, pipelined
          --socket PATH      the server's Unix socket
          --clients N        connections (50; fill: 8)
          --pipeline N       requests in flight per connection (1; fill: 128)
          --requests N       how many in all (100000)
          --op get|set       what load sends (set)
          --writes PERCENT   how many of mixed are SETs (20)
          --keys N           keys are key:000000000000 and up, drawn evenly (100000)
          --value-bytes N    (64)
          --seed N           (1)
          --watchers N       load: watches that run meanwhile, each with its own prefix (0)
          --watch-connections N   load: how many connections they use (one each)
          --pid PID          load: the server, to print its processor time for each request
          --watched          load: set keys below the first watch's prefix
          --number           load: the value is a number with that many digits
          --folder TEXT      what keys and prefixes begin with

        delivery how long a value takes from one paced writer to each of many subscribers
          --server NAME      stated (STATE.WATCH, SET), redis (SUBSCRIBE, PUBLISH), redis-stored (a
                             script that also sets a key) or etcd (its JSON gateway)
          --socket PATH      for stated and redis
          --watch-socket PATH   stated: where the subscribers are, of another daemon of a cluster
          --folder TEXT      stated: what the key begins with
          --port N           for etcd (2379)
          --watchers N (100) --rate N a second (500) --seconds N (5) --value-bytes N (64)

        etcd     puts to etcd over gRPC, closed loop; with --watch-endpoint how long a value takes from
                 one paced writer to a watch
          --endpoint URL     a member, such as http://127.0.0.1:2379
          --connections N (50) --streams N of each (1) --requests N (10000) --keys N (10000)
          --value-bytes N (64) --folder TEXT --seed N (1)
          --guarded          transactions that compare a key and put a signature too
          --watch-endpoint URL   the member of the watch
          --rate N a second (100) --seconds N (5)

        watches  watches as many prefixes until standard input ends; prints a line once it does
          --socket PATH --watchers N (1000) --connections N (one each) --folder TEXT

        ready    waits for the first PONG and prints how long it took
          --socket PATH --timeout SECONDS (60)
          --since MICROSECONDS   the start time, by the wall clock
          --pid PID          the server: stops waiting once it has ended
        sample   prints processor time and resident memory of a process
          --pid PID
        spawn    runs a command repeatedly and prints the median of its time from start to end
          --times N (500) -- COMMAND ...

        library  nanoseconds per operation of the containers, compared with a bare Mutex, a dispatch
                 queue, SQLite itself and a plain client; medians
          --turns N (5) --operations N (2000000)
          --rows LIST        of memory,listening,arrays,durable,remote,scopes,kept (all)
          --commits N        durable commits in a turn (2000)
          --directory DIR    for temporary files (/var/tmp)
          --stated PATH      the daemon for the remote rows (the one beside this program)

        abuse    how long ten ordinary clients wait for a GET, and one for a PING, beside an abuser
          --socket PATH --pid PID      the server, to print its peak memory
          --kinds LIST       of \(AbuseKind.names) (all)
          --seconds N (3)    for each kind
          --rounds N (1)     for each kind at most, until no PING waits longer than
                             --enough-us N (0); the best round counts
          --user NAME        the abuser's user, if this is root

        writers  writes checkable values until the server is gone, then saves the log
        check    compares the server with the log, and updates the log
          --socket PATH --log FILE --clients N (8) --seed N (1)
          --writes N         writers: end after this many (default: when the server is gone)
          --plain            no STATE verbs: for Redis
        """

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        let arguments = CommandLine.arguments.dropFirst()
        do throws(BenchError) {
            guard let command = arguments.first else { throw .usage("COMMAND is missing") }
            try run(command, arguments.dropFirst())
            guard clinux_end_output() == 0 else { throw .failed("standard output: not written") }
        } catch {
            complain("statebench: \(error.message)\n")
            if case .usage = error { complain(usage + "\n") }
            exit(error.exitCode)
        }
    }

    private static func complain(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    private static func run(
        _ command: String,
        _ arguments: ArraySlice<String>
    ) throws(BenchError) {
        switch command {
        case "load": try LoadCommand.run(Options(arguments, flags: ["watched", "number"]))
        case "delivery": try DeliveryCommand.run(Options(arguments))
        case "etcd": try EtcdCommand.run(Options(arguments, flags: ["guarded"]))
        case "watches": try WatchesCommand.run(Options(arguments))
        case "mixed": try MixedCommand.run(Options(arguments))
        case "fill": try FillCommand.run(Options(arguments))
        case "ready": try ReadyCommand.run(Options(arguments))
        case "sample": try SampleCommand.run(Options(arguments))
        case "spawn": try SpawnCommand.run(Options(arguments))
        case "library": try LibraryCommand.run(Options(arguments))
        case "remote-writer": try RemoteWriterCommand.run(Options(arguments))
        case "abuse": try AbuseCommand.run(Options(arguments))
        case "abuser": try AbuserCommand.run(Options(arguments))
        case "writers": try WritersCommand.run(Options(arguments, flags: ["plain"]))
        case "check": try CheckCommand.run(Options(arguments, flags: ["plain"]))
        case "--help", "help": print(usage)
        default: throw .usage("unknown command '\(command)'")
        }
    }
}
