import CTestUsers
import Glibc
import StateClient
import StateContainers
import StateEngine
import StateLog
import StateSQLite
import StateSystem

/// What the library's tests run as another process: each command is a program of a few lines that a test may kill.
@main
enum StateTestProgram {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            try run(arguments)
        } catch {
            let line = Array("\(error)\n".utf8)
            write(STDERR_FILENO, line, line.count)
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) throws {
        switch (arguments.first ?? "", arguments.dropFirst().map { $0 }) {
        case ("count", let rest) where rest.count == 3:
            try count(in: rest[0], Key(rest[1]), Int(rest[2]) ?? 0)
        case ("set", let rest) where rest.count == 4:
            try set(in: rest[0], Key(rest[1]), from: Int(rest[2]) ?? 0, to: Int(rest[3]) ?? 0)
        case ("transfer", let rest) where rest.count == 2:
            try transfer(in: rest[0], rest[1])
        case ("rewrite", let rest) where rest.count == 2:
            try rewrite(in: rest[0], Key(rest[1]))
        case ("hold", let rest) where rest.count == 2:
            try hold(in: rest[0], Int(rest[1]) ?? 0)
        case ("default", let rest) where rest.count == 1:
            try setForever(Key(rest[0]))
        case ("change", let rest) where rest.count <= 1:
            try changeLarge(expectsScopes: rest.first == "scopes")
        case ("locks", let rest) where rest.count == 4:
            try locks(in: rest[0], rest[1], Int(rest[2]) ?? 0, reportingTo: rest[3])
        case ("settle", let rest) where rest.count == 1:
            try settle(in: rest[0])
        case ("fork", let rest) where rest.count == 1:
            try fork(with: rest[0])
        case ("fill", let rest) where rest.count == 1:
            try fill(rest[0])
        default:
            throw StateError(
                .err,
                "count SOCKET KEY N | set SOCKET KEY FROM TO | transfer DATABASE|SOCKET PATH | rewrite DIRECTORY KEY | hold SOCKET N | default KEY | change [scopes] | locks SOCKET NAME N PATH | settle DIRECTORY | fill DIRECTORY | fork DATABASE"
            )
        }
    }

    /// Changes a large value that was given to a container in memory, says whether that was done in
    /// place, and uses the container in a scope.
    private static func changeLarge(expectsScopes: Bool) throws {
        if expectsScopes { StateScope.expect() }
        func makeState() -> (State<[UInt8]>, UInt?) {
            let bytes = [UInt8](repeating: 0, count: 1 << 20)
            return (State(bytes, key: "large"), address(of: bytes))
        }
        let (state, before) = makeState()
        state.modify { $0[5] = 1 }
        let after = state.withValue { address(of: $0) }
        say(before == after ? "in place" : "copied")
        say(StateScope.run { state.value[5] })
    }

    /// A child that was forked changes values and releases them, and then its parent does; and another one
    /// while its parent commits.
    private static func fork(with path: String) throws {
        var database: SQLiteDatabase? = try SQLiteDatabase(path: path)
        var files: StateDirectory? = try StateDirectory(path: path + ".files")
        var states: [PersistentState<Int>] = []
        if let database { states.append(try SQLiteState(0, key: "number", in: database)) }
        if let files { states.append(try FileState(0, key: "number", in: files)) }
        for state in states { try state.set(1) }
        try inChild {
            for state in states { tryToSet(state) }
            (states, database, files) = ([], nil, nil)
        }
        for state in states { try state.set(3) }
        let directory = open(path + ".files", O_RDONLY | O_DIRECTORY)
        say(flock(directory, LOCK_EX | LOCK_NB) == 0 ? "free" : "locked")
        guard let database else { return }
        let busy = try SQLiteState(0, key: "busy", in: database)
        let isDone = StateLock(false)
        let writer = WorkerThread(name: "writer")
        writer.start { while !isDone.withLock({ $0 }) { _ = try? busy.set(4) } }
        for _ in 0..<5 {
            usleep(5_000)
            try inChild { tryToSet(states[0]) }
        }
        isDone.withLock { $0 = true }
        writer.join()
    }

    private static func tryToSet(_ state: PersistentState<Int>) {
        do throws(StateError) {
            try state.set(2)
            say("committed")
        } catch {
            say("\(error.code)")
        }
    }

    /// Runs `body` in a child that is forked, and waits until that has exited.
    private static func inChild(_ body: () throws -> Void) throws {
        let child = ctest_fork()
        guard child != 0 else {
            try body()
            exit(0)
        }
        var status: Int32 = 0
        waitpid(child, &status, 0)
        say(status)
    }

    private static func address(of bytes: [UInt8]) -> UInt? {
        bytes.withUnsafeBytes { $0.baseAddress.map { UInt(bitPattern: $0) } }
    }

    /// Sets one of 50 keys, and `number`, in each commit, and prints that number once it is durable; the
    /// store is settled all the time meanwhile.
    private static func settle(in directory: String) throws {
        var options = SQLiteBacking.Options()
        options.log.segmentByteCount = 48 << 10
        options.log.largeSegmentByteCount = 96 << 10
        options.settling.logByteCount = 24 << 10
        options.settling.sliceByteCount = 32 << 10
        let backing = SQLiteBacking(directory: directory, options)
        let loaded = try backing.load { _ in }
        var revision = loaded.revision
        while true {
            revision += 1
            let keys = ["key/\(revision % 50)", "number"]
            let changes = keys.enumerated().map { ordinal, key in
                BuiltBatch.Change(
                    revision: revision,
                    ordinal: Int32(ordinal),
                    key: Array(key.utf8),
                    value: Array("\(revision)".utf8),
                    created: revision,
                    time: revision
                )
            }
            try BuiltBatch(changes).commit(to: backing)
            say(revision)
        }
    }

    /// Sets one key after the other until the disk is full, deletes all of them, and begins anew as soon
    /// as sets are accepted; prints each change once it is durable.
    private static func fill(_ directory: String) throws {
        var options = SQLiteBacking.Options()
        options.history = .keep(byteCount: 4 << 20)
        let keyspace = try LocalKeyspace(
            backing: SQLiteBacking(directory: directory, options)
        )
        let numbers = keyspace.entries("/", after: nil, limit: .max).compactMap { key, _ in
            Int(key.description.dropFirst(5))
        }
        var (first, next) = (numbers.min() ?? 0, (numbers.max() ?? 0) + 1)
        while true {
            let value = [UInt8](repeating: UInt8(truncatingIfNeeded: next), count: 4_000)
            do throws(StateError) {
                _ = try keyspace.apply([.set(Key("fill/\(next)"), value)])
            } catch {
                guard error.code == .noSpace else { throw error }
                if first == next { poll(nil, 0, 5) } else { say("full") }
                while first < next {
                    _ = try keyspace.apply([.delete(Key("fill/\(first)"))])
                    say("-\(first)")
                    first += 1
                }
                continue
            }
            say("+\(next)")
            next += 1
        }
    }

    /// Adds 1 so many times, and prints for each `ok VALUE` or `unknown`.
    ///
    /// What was not sent is tried again.
    private static func count(in socket: String, _ key: Key, _ times: Int) throws {
        let counter = try attached(0, key, socket)
        var done = 0
        while done < times {
            do throws(StateError) {
                let value = try counter.modify { value -> Int in
                    value += 1
                    return value
                }
                say("ok \(value)")
                done += 1
            } catch {
                switch error.code {
                case .unreachable: usleep(2_000)
                case .outcomeUnknown:
                    say("unknown")
                    done += 1
                default: throw error
                }
            }
        }
    }

    /// Sets the numbers in turn; each is set before the next.
    private static func set(in socket: String, _ key: Key, from first: Int, to last: Int) throws {
        let state = try attached(0, key, socket)
        var number = first
        while number <= last {
            do throws(StateError) {
                try state.modify(number)
                number += 1
            } catch {
                guard error.code == .unreachable || error.code == .outcomeUnknown else {
                    throw error
                }
                usleep(2_000)
            }
        }
        say(last)
    }

    /// Moves amounts between three containers for ever, and prints how often.
    private static func transfer(in kind: String, _ path: String) throws {
        let accounts: [PersistentState<Int>]
        if kind == "database" {
            let database = try SQLiteDatabase(path: path)
            accounts = try names.map { try SQLiteState(0, key: $0, in: database) }
        } else {
            accounts = try names.map { try attached(0, $0, path) }
        }
        var times = 0
        while true {
            try withTransaction { tx in
                tx[accounts[0]] += 1
                tx[accounts[1]] += 1
                tx[accounts[2]] -= 2
            }
            times += 1
            say(times)
        }
    }

    private static let names: [Key] = ["account/a", "account/b", "account/c"]

    /// Fills a file with one digit after the other for ever, and prints which.
    private static func rewrite(in directory: String, _ key: Key) throws {
        let state = try FileState("", key: key, in: StateDirectory(path: directory))
        var digit = 0
        while true {
            digit = (digit + 1) % 10
            try state ~> String(repeating: "\(digit)", count: 100_000)
            say(digit)
        }
    }

    /// Sets a key of the default daemon to 0, 1 and so on; prints `ok` or why not, whenever that
    /// changes.
    private static func setForever(_ key: Key) throws {
        var state: RemoteState<Int>?
        var said = ""
        for number in 0... {
            var outcome = "ok"
            do throws(StateError) {
                if state == nil { state = try RemoteState(-1, key: key) }
                try state?.modify(number)
            } catch {
                outcome = error.message
            }
            if outcome != said { say(outcome) }
            said = outcome
            usleep(2_000)
        }
    }

    /// Sets a key on each of so many connections that lives as long as it, says `ready`, and waits for its end.
    private static func hold(in socket: String, _ count: Int) throws {
        var clients: [Client] = []
        for number in 0..<count {
            let client = try Client(socket: socket)
            try client.set([], for: Key("hold/\(number)"), livingAs: .connection)
            clients.append(client)
        }
        say("ready")
        withExtendedLifetime(clients) { while true { pause() } }
    }

    /// Takes a lock so many times; appends `+TOKEN` and `-TOKEN` to a file while it has it.
    private static func locks(
        in socket: String,
        _ name: String,
        _ times: Int,
        reportingTo path: String
    ) throws {
        let keyspace = try RemoteKeyspace(socket: socket, whileAway: .wait(upTo: .seconds(60)))
        let lock = try RemoteLock(name, in: keyspace)
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        for _ in 0..<times {
            try lock.withLock { grant in
                for sign in ["+", "-"] {
                    let line = Array("\(sign)\(grant.token)\n".utf8)
                    write(file, line, line.count)
                }
            }
        }
        say("done")
    }

    /// Prints a line at once: who reads it may kill this process.
    private static func say(_ text: some CustomStringConvertible) {
        let line = Array("\(text)\n".utf8)
        write(STDOUT_FILENO, line, line.count)
    }

    /// A container of a daemon that may not be there yet.
    private static func attached(
        _ value: Int,
        _ key: Key,
        _ socket: String
    ) throws -> RemoteState<Int> {
        let keyspace = try RemoteKeyspace.shared(socket: socket)
        for _ in 0..<2_000 {
            do throws(StateError) {
                return try RemoteState(value, key: key, in: keyspace)
            } catch {
                guard error.code == .unreachable else { throw error }
                usleep(5_000)
            }
        }
        return try RemoteState(value, key: key, in: keyspace)
    }
}
