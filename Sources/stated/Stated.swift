import CLinux
import Glibc
import StateEngine
import StateRules
import StateServer

/// The daemon: parses its command line, serves until a signal, and ends with an exit code.
///
/// 0 stopped by a signal; 2 wrong configuration or command line; 3 another process uses the socket
/// or the data; 5 the storage cannot be used or is damaged. Only this file prints to standard
/// output and exits.
@main
enum Stated {
    static func main() {
        clinux_return_large_blocks()
        let hasFewAddresses = MachineMemory.addressLimit != nil
        clinux_use_huge_pages(hasFewAddresses ? 4 << 20 : 16 << 20)
        if hasFewAddresses { clinux_use_one_heap() }
        // If nobody reads the log any more, writing it must not end the daemon.
        signal(SIGPIPE, SIG_IGN)
        let log = Log.standardError()
        let findings = ConfigurationFindings()
        do throws(StateError) {
            let arguments = ProcessArguments.text()
            switch try Request(arguments: arguments, findings) {
            case .help: print(helpText, terminator: "")
            case .configurationSchema: print(ConfigurationSchema.text, terminator: "")
            case .version: print("stated \(Version.withCommit)")
            case .serve(let options):
                findings.writeUnwritten(to: log)
                try Daemon(options: options, arguments: arguments, log: log).run()
            case .checkConfiguration(let check):
                let count = try check.run(findings)
                findings.writeUnwritten(to: log)
                log.flush()
                let name = check.path == "-" ? "standard input" : check.path
                print("\(name) is valid: \(counted(count, "rule"))")
            case .check(let store): try end(StoreCommands.check(store) { print($0) })
            case .salvage(let store, let target):
                try end(StoreCommands.salvage(store, to: target) { print($0) })
            case .restore(let files, let target):
                try StoreCommands.restore(files, to: target) { print($0) }
            }
        } catch {
            // The error is the first of a configuration, if that has any.
            findings.writeUnwritten(to: log)
            if findings.errors.isEmpty { log.write(.error, .startFailed, error.message) }
            log.flush()
            exit(exitStatus(of: error.code))
        }
        endOutput(log)
    }

    /// Exits with 5 if what was printed could not be written.
    private static func endOutput(_ log: Log) {
        let reason = clinux_end_output()
        if reason != 0 {
            log.write(.error, .startFailed, "standard output: \(String(cString: strerror(reason)))")
        }
        log.flush()
        if reason != 0 { exit(exitStatus(of: .storage)) }
    }

    /// Exits with 5 if something is damaged.
    private static func end(_ isIntact: Bool) {
        if !isIntact { exit(exitStatus(of: .corrupt)) }
    }

    private static func exitStatus(of code: StateError.Code) -> Int32 {
        switch code {
        case .err: 2
        case .locked: 3
        default: 5
        }
    }
}
