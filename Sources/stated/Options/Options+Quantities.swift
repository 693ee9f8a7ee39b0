import StateEngine
import StateServer

/// The options that say how much of something there may be.
extension Options {
    /// Their names.
    static let quantities: Set<String> = [
        "--history-changes", "--history-age", "--history-bytes", "--clients", "--watches",
        "--output-bytes", "--value-bytes",
    ]

    /// Takes the value of one of ``quantities``.
    ///
    /// - Throws: ``StateError/Code/err``: what the option takes, and what it got.
    mutating func set(_ name: String, to text: String) throws(StateError) {
        do throws(StateError) {
            switch name {
            case "--history-changes":
                history.changeCount = try Quantity.count(text, in: 0...Int.max)
            case "--history-age": history.age = try Quantity.duration(text)
            case "--history-bytes": history.byteCount = try Quantity.byteCount(text)
            case "--clients": clientCount = try Quantity.count(text, in: 1...1_000_000)
            case "--watches": watchCount = try Quantity.count(text, in: 1...1_000_000)
            case "--output-bytes":
                outputByteCount = Int(try Quantity.byteCount(text, in: 65_536...(1 << 40)))
            case "--value-bytes":
                // A transaction of one change has to hold it, with its key.
                let most = Int64(limits.transactionByteCount - Key.maximumByteCount)
                limits.valueByteCount = Int(try Quantity.byteCount(text, in: 1...most))
            default: preconditionFailure("\(name) is no quantity")
            }
        } catch {
            throw Request.error("\(name) takes \(error.message)")
        }
    }
}
