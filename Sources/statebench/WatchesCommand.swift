import Glibc

/// Watches that only are there, until standard input ends.
enum WatchesCommand {
    static func run(_ options: Options) throws(BenchError) {
        try FileDescriptors.raiseLimit()
        let socket = try options.text("socket")
        let count = try options.number("watchers", standard: 1000)
        let connectionCount = try options.number("connections", standard: count)
        let folder = options.text("folder", standard: "")
        var connections: [Connection] = []
        for number in 0..<min(count, connectionCount) {
            let connection = try Connection(socket: socket)
            try connection.ask("HELLO", "3")
            for watcher in stride(from: number, to: count, by: connectionCount) {
                try connection.ask("STATE.WATCH", "\(folder)watched/\(watcher)/")
            }
            connections.append(connection)
        }
        print("watchers \(count)")
        fflush(nil)
        withExtendedLifetime(connections) {
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) > 0 {}
        }
    }
}
