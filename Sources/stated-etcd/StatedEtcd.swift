import CLinux
import Glibc
import StateEtcd
import StateModel
import StateSystem

/// The link between a daemon and etcd: follows the cluster until a signal.
///
/// 0 stopped by a signal; 2 wrong configuration or command line; 5 the output cannot be written.
@main
enum StatedEtcd {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        // It remembers nothing: the daemon has each commit completely, or not at all.
        for number in [SIGTERM, SIGINT] { signal(number) { _ in _exit(0) } }
        let arguments = ProcessArguments.text()
        if arguments.contains("--help") { return write(toOutput: helpText) }
        if arguments.contains("--version") {
            return write(toOutput: "stated-etcd \(Version.withCommit)\n")
        }
        do throws(StateError) {
            let options = try LinkConfiguration(arguments).link()
            MirrorLink(options) { write($0) }.run()
        } catch {
            write(error.message)
            exit(2)
        }
    }

    private static func write(toOutput text: String) {
        print(text, terminator: "")
        let reason = clinux_end_output()
        guard reason != 0 else { return }
        write("standard output: \(String(cString: strerror(reason)))")
        exit(5)
    }

    /// Writes a line to the log.
    private static func write(_ line: String) {
        let text = Array("stated-etcd: \(StateError.printable(line))\n".utf8)
        _ = Glibc.write(STDERR_FILENO, text, text.count)
    }
}
