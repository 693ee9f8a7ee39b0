import Glibc
import StateEtcd
import StateModel
import StateSystem

/// The link between a daemon and etcd: follows the cluster until a signal.
///
/// 0 stopped by a signal; 2 wrong configuration or command line.
@main
enum StatedEtcd {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        // It remembers nothing: the daemon has each commit completely, or not at all.
        for number in [SIGTERM, SIGINT] { signal(number) { _ in _exit(0) } }
        let arguments = ProcessArguments.text()
        if arguments.contains("--help") { return print(helpText, terminator: "") }
        if arguments.contains("--version") { return print("stated-etcd \(Version.withCommit)") }
        do throws(StateError) {
            let options = try LinkConfiguration(arguments).link()
            MirrorLink(options) { write($0) }.run()
        } catch {
            write(error.message)
            exit(2)
        }
    }

    /// Writes a line to the log.
    private static func write(_ line: String) {
        let text = Array("stated-etcd: \(StateError.printable(line))\n".utf8)
        _ = Glibc.write(STDERR_FILENO, text, text.count)
    }
}
