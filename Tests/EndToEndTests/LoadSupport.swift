import Glibc
import StateTestSupport
import Testing

/// Runs `statebench` to its end; what it prints, by name.
///
/// - Throws: ``SystemFailure`` with what it wrote, where it ends with another code than 0.
func statebench(_ arguments: String...) throws -> [String: Double] {
    let result = try runCommand(builtProgram("statebench"), arguments)
    guard result.exitCode == 0 else { throw SystemFailure("statebench: \(result)") }
    return numbers(in: result)
}

/// The lines `name number` of an output.
func numbers(in result: CommandResult) -> [String: Double] {
    var numbers: [String: Double] = [:]
    for line in result.lines {
        let words = line.split(separator: " ")
        if words.count == 2, let number = Double(words[1]) { numbers[String(words[0])] = number }
    }
    return numbers
}

extension Daemon {
    /// Processor time so far, in the kernel's ticks.
    func processorTicks() throws -> Double {
        try #require(statebench("sample", "--pid", "\(pid)")["cpu_ticks"])
    }

    /// Resident memory in MiB.
    func residentMemory() throws -> Double {
        try #require(statebench("sample", "--pid", "\(pid)")["rss_bytes"]) / 1_048_576
    }
}
