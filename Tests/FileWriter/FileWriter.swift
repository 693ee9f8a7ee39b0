import Glibc
import StateEngine

/// Writes files through a backing of its own, to be killed by a test: `filewriter DIRECTORY loop SIZE KEY…` until then, or
/// `filewriter DIRECTORY CHANGE…`, a commit for each argument: `key=value,other-` sets one key and deletes another.
@main
enum FileWriter {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count > 1 else { return }
        do {
            let keyspace = try LocalKeyspace(backing: FileBacking(directory: arguments[0]))
            say("open")
            if arguments[1] == "loop" {
                try loop(
                    keyspace,
                    size: Int(arguments[2]) ?? 1,
                    arguments[3...].map { try Key($0) }
                )
            }
            for argument in arguments[1...] { commit(argument, to: keyspace) }
            keyspace.close()
            say("closed")
        } catch {
            say("\(error)")
        }
    }

    /// Numbered commits, each number said once it is durable: every key holds it in each of its lines.
    private static func loop(_ keyspace: LocalKeyspace, size: Int, _ keys: [Key]) throws -> Never {
        var number = 0
        while true {
            number += 1
            let line = Array("\(number)\n".utf8)
            let value = (0...(size / line.count)).flatMap { _ in line }
            try keyspace.apply(keys.map { .set($0, value) })
            say("\(number)")
        }
    }

    private static func commit(_ text: String, to keyspace: LocalKeyspace) {
        do {
            let mutations = try text.split(separator: ",").map { change -> Mutation in
                if change.hasSuffix("-") { return .delete(try Key(String(change.dropLast()))) }
                let parts = change.split(separator: "=", maxSplits: 1)
                return .set(try Key(String(parts[0])), Array((parts.last ?? "").utf8))
            }
            // On the commit thread, always: strace counts the calls of each thread by itself.
            let answer = StateLock<Result<Int64, StateError>?>(nil)
            let answered = BlockingSemaphore()
            keyspace.submit(mutations) { given in
                answer.withLock { $0 = given }
                answered.signal()
            }
            answered.wait()
            _ = try answer.withLock { $0 }?.get()
            say("done \(text)")
        } catch {
            say("\(error)")
        }
    }

    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}
