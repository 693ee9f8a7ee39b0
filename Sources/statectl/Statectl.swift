import Glibc
import StateClient
import StateModel
import StateSystem

/// `statectl`: the daemon from the command line.
///
/// Reading order: `Invocation` parses the arguments, a verb's file runs it, `Output` holds what it
/// prints, and only this file turns a `Failure` into an exit code.
@main
struct Statectl {
    static func main() {
        // If the reader went away, write(2) fails, which counts as success; no signal must end
        // this.
        signal(SIGPIPE, SIG_IGN)
        var output = Output()
        do throws(Failure) {
            try run(&output)
            try output.end()
            exit(0)
        } catch {
            // Output before the failure is part of the answer.
            try? output.end()
            if let message = error.message { Output.report(message) }
            exit(error.exitCode)
        }
    }

    private static func run(_ output: inout Output) throws(Failure) {
        let invocation = try Invocation(arguments: ProcessArguments.bytes())
        switch invocation.task {
        case .version: try version(invocation, &output)
        case .help(let verb): output.write(Help.text(for: verb))
        case .helpOnAllVerbs: output.write(Help.verbs)
        case .perform(let verb): try verb.perform(invocation, &output)
        }
    }

    /// `version`: that of this program.
    static func version(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        guard invocation.isJSON else { return output.write("statectl \(Version.withCommit)\n") }
        output.write(json: ["statectl": .text(Version.withCommit)])
    }
}
