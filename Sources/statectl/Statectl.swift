import Glibc
import StateClient
import StateModel
import StateSystem

/// `statectl`: the daemon from the command line.
///
/// Reading order: an `Invocation` is made of the arguments, a verb's file carries it out,
/// `Output` holds what it prints, and a `Failure` becomes an exit code here and nowhere else.
@main
struct Statectl {
    static func main() {
        // A reader that went away is an error of write(2), which counts as success, and no signal.
        signal(SIGPIPE, SIG_IGN)
        var output = Output()
        do throws(Failure) {
            try run(&output)
            try output.flush()
            exit(0)
        } catch {
            // What was printed before the failure is part of the answer.
            try? output.flush()
            if let message = error.message { Output.report(message) }
            exit(error.exitCode)
        }
    }

    private static func run(_ output: inout Output) throws(Failure) {
        let invocation = try Invocation(arguments: ProcessArguments.bytes())
        switch invocation.task {
        case .version: output.write("statectl \(Help.version)\n")
        case .help(let verb): output.write(Help.text(for: verb))
        case .perform(let verb): try verb.perform(invocation, &output)
        }
    }
}
