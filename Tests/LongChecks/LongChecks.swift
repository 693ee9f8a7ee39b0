@preconcurrency import Glibc
import StateTestSupport

/// What `scripts/endure` starts: checks of expiry, lifetimes, tracking and backups with large numbers, each on a
/// daemon of its own.
///
/// ```
/// longchecks due|renewals|lifetimes|tracking|backup [--NAME NUMBER]… [--directory DIR]
/// ```
@main
enum LongChecks {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        // A pipe would keep the lines until the end.
        setvbuf(stdout, nil, _IOLBF, 0)
        let arguments = CommandLine.arguments.dropFirst()
        do {
            let options = try Options(arguments.dropFirst())
            switch arguments.first ?? "" {
            case "due": try DueCheck(options).run()
            case "renewals": try RenewalCheck(options).run()
            case "lifetimes": try LifetimeCheck(options).run()
            case "tracking": try TrackingCheck(options).run()
            case "backup": try BackupCheck(options).run()
            default:
                throw Failure("longchecks due|renewals|lifetimes|tracking|backup [--NAME NUMBER]…")
            }
        } catch {
            let line = Array("longchecks: \(error)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            exit(1)
        }
    }
}

/// What does not hold.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// `--name value` pairs.
struct Options {
    private var values: [String: String] = [:]

    init(_ arguments: ArraySlice<String>) throws {
        var rest = arguments
        while let name = rest.popFirst() {
            guard name.hasPrefix("--"), let value = rest.popFirst() else {
                throw Failure("'\(name)' is no option with a value")
            }
            values[String(name.dropFirst(2))] = value
        }
    }

    func number(_ name: String, standard: Int) throws -> Int {
        guard let text = values[name] else { return standard }
        guard let number = Int(text), number >= 0 else {
            throw Failure("--\(name) expects a number, not '\(text)'")
        }
        return number
    }

    /// A new directory for a daemon's data, below the one that is named.
    func makeDirectory() throws -> TemporaryDirectory {
        try TemporaryDirectory(in: values["directory"] ?? "/var/tmp")
    }
}

/// A percentile of numbers: the one that this share of them does not exceed; 0 if there are none.
func percentile<Number: BinaryInteger>(_ numbers: [Number], _ share: Double) -> Number {
    guard !numbers.isEmpty else { return 0 }
    let place = Int((Double(numbers.count) * share).rounded(.up)) - 1
    return numbers.sorted()[max(0, place)]
}

/// The middle one, or the mean of the two in the middle.
func median(_ numbers: [Double]) -> Double {
    let sorted = numbers.sorted()
    let half = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2
}

extension Double {
    /// With so many digits after the point.
    func text(_ places: Int) -> String {
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        return "\((self * scale).rounded() / scale)"
    }
}

/// Nanoseconds since 1970.
func wallNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Sleeps until a wall time in nanoseconds.
func sleep(until time: Int64) {
    var end = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
    while clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, nil) == EINTR {}
}

/// A field of `/proc/PID/status` in kibibytes, such as `VmRSS`.
func kibibytes(_ field: String, of pid: pid_t) throws -> Int {
    let text = String(decoding: try readFile("/proc/\(pid)/status"), as: UTF8.self)
    for line in text.split(separator: "\n") where line.hasPrefix(field + ":") {
        let digits = line.filter { $0.isASCII && $0.isNumber }
        if let number = Int(digits) { return number }
    }
    throw Failure("/proc/\(pid)/status has no \(field)")
}
