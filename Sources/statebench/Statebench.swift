import Glibc

/// Load, measurements and crash checks for `stated`; what Redis understands too runs against Redis.
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
          --watchers N       load: watches, each of a prefix of its own, meanwhile (0)
          --watch-connections N   load: on how many connections they are (as many)
          --pid PID          load: the server, whose processor time for each request is printed
          --watched          load: all that is set is below the first one's prefix
          --number           load: the value is a number of so many digits

        delivery how long a value takes from one paced writer to each of many subscribers
          --server NAME      stated (STATE.WATCH, SET), redis (SUBSCRIBE, PUBLISH), redis-stored (a script that also
                             sets a key) or etcd (its JSON gateway)
          --socket PATH      of stated and redis
          --port N           of etcd (2379)
          --watchers N (100) --rate N a second (500) --seconds N (5) --value-bytes N (64)

        ready    waits for the first PONG and prints how long it took
          --socket PATH --timeout SECONDS (60)
          --since MICROSECONDS   of the wall clock, from when to count
          --pid PID          the server: no use in waiting once it has ended
        sample   prints processor time and resident memory of a process
          --pid PID
        spawn    runs a command again and again and prints the median of its time from start to end
          --times N (500) -- COMMAND ...

        library  nanoseconds per operation of the containers, beside a bare Mutex, a dispatch queue,
                 a bare append to the history and a plain client; medians
          --turns N (5) --operations N (2000000)
          --rows LIST        of memory,listening,arrays,durable,remote,scopes (all)
          --commits N        durable ones in a turn (2000)
          --directory DIR    where (/var/tmp)
          --stated PATH      the daemon for the remote ones (the one beside this program)

        abuse    what ten ordinary clients wait for a GET, and one for a PING, beside one abuser of each kind
          --socket PATH --pid PID      the server, whose most memory is printed
          --kinds LIST       of \(AbuseKind.names) (all)
          --seconds N (3)    of each
          --rounds N (1)     of each at most, as long as a PING waits longer than --enough-us N (0); the best one counts
          --user NAME        whom the abuser is, where this is root

        writers  writes what can be checked until the server is gone, then writes the log
        check    compares what the server has with the log, and settles the log
          --socket PATH --log FILE --clients N (8) --seed N (1)
          --writes N         writers: end after as many (without: when the server is gone)
          --plain            none of the STATE verbs: for Redis
        """

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        let arguments = CommandLine.arguments.dropFirst()
        do throws(BenchError) {
            guard let command = arguments.first else { throw .usage("no command") }
            try run(command, arguments.dropFirst())
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
        default: throw .usage("no command is named '\(command)'")
        }
    }
}
