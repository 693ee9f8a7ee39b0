import StateEngine
import StateJSON
import StateRules
import StateServer

/// What is wrong with the files of a configuration, or probably not meant, in their order.
///
/// Used by one thread at a time.
final class ConfigurationFindings {
    /// A fault, with its line.
    struct Finding {
        /// The number of the file.
        let part: Int
        let place: JSON5Document.Place?
        /// The file, the place in it, the path and the sentence.
        let message: String
        let excerpt: (line: String, caret: String)?

        /// The line and the caret below it.
        var details: [String] {
            guard let place, let excerpt else { return [] }
            let number = String(place.line)
            let space = String(repeating: " ", count: number.utf8.count)
            return ["  \(number) | \(excerpt.line)", "  \(space) | \(excerpt.caret)"]
        }
    }

    /// The most errors that are shown, and the most warnings.
    static let limit = 20

    /// The reload that the files are read for; nil at a start and in a check.
    let waiting: ReloadWait?

    init(_ waiting: ReloadWait? = nil) { self.waiting = waiting }

    private(set) var errors: [Finding] = []
    private(set) var warnings: [Finding] = []
    /// The folders with files of the configuration.
    var reservedFolders: [String] = []
    /// Finds the place of a fault in the files that were read.
    var locate: (OptionFault) -> Finding = { fault in
        Finding(part: 0, place: nil, message: fault.description, excerpt: nil)
    }
    /// Finds the offset of a fault in its file, which is quick.
    var offset: (OptionFault) -> Int = { _ in 0 }

    /// Adds what was found after the files were read.
    func add(faults: [OptionFault]) { add(errors: first(faults).map(locate)) }

    /// Adds what was found after the files were read, and does not prevent their use.
    func add(warnings faults: [OptionFault]) { add(warnings: first(faults).map(locate)) }

    /// Those of the faults that can be shown, in the order of the files.
    private func first(_ faults: [OptionFault]) -> [OptionFault] {
        let places = faults.enumerated().map { ($1.part, offset($1), $0) }
        return places.sorted { $0 < $1 }.prefix(ConfigurationFindings.limit).map { faults[$0.2] }
    }

    /// Adds a warning that has no place.
    func add(warning: String) {
        add(warnings: [Finding(part: 0, place: nil, message: warning, excerpt: nil)])
    }

    func add(errors new: [Finding]) { errors = ConfigurationFindings.sorted(errors + new) }

    func add(warnings new: [Finding]) { warnings = ConfigurationFindings.sorted(warnings + new) }

    private static func sorted(_ findings: [Finding]) -> [Finding] {
        let sorted = findings.enumerated().sorted { left, right in
            guard left.element.part == right.element.part else {
                return left.element.part < right.element.part
            }
            return (left.element.place?.line ?? 0, left.element.place?.column ?? 0, left.offset)
                < (right.element.place?.line ?? 0, right.element.place?.column ?? 0, right.offset)
        }
        return sorted.prefix(limit).map(\.element)
    }

    /// The first error, and the number of the others; nil if there is none.
    var summary: String? {
        guard let first = errors.first else { return nil }
        let count = errors.count - 1
        return count == 0
            ? first.message : "\(first.message); and \(count) more error\(count == 1 ? "" : "s")"
    }

    /// Whether they are in the log.
    var isWritten = false
}
