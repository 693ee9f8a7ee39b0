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
        case .perform(let verb): try perform(verb, invocation, &output)
        }
    }

    private static func perform(
        _ verb: Verb,
        _ invocation: Invocation,
        _ output: inout Output
    ) throws(Failure) {
        switch verb {
        case .get: try get(invocation, &output)
        case .set: try set(invocation, &output)
        case .delete: try delete(invocation, &output)
        case .list: try list(invocation, &output)
        case .watch: try watch(invocation, &output)
        case .wait: try wait(invocation, &output)
        case .handlers: try handlers(invocation, &output)
        case .import: try importEntries(invocation, &output)
        case .export: try export(invocation, &output)
        case .history: try history(invocation, &output)
        case .blame: try blame(invocation, &output)
        case .diff: try diff(invocation, &output)
        case .revert: try revert(invocation, &output)
        case .compact: try compact(invocation, &output)
        case .status: try status(invocation, &output)
        case .watches: try watches(invocation, &output)
        case .check: try check(invocation, &output)
        case .reload: try reload(invocation, &output)
        case .explain: try explain(invocation, &output)
        case .rules: try rules(invocation, &output)
        case .edit: try edit(invocation, &output)
        }
    }
}
