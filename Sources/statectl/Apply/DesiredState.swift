import StateClient
import StateJSON
import StateModel

/// What a file says of keys: their values, those that are to be absent, and the prefixes that it
/// describes; see ``NestedValues``.
struct DesiredState {
    /// The values; nil for a key that is to be absent.
    let values: [Key: [UInt8]?]
    /// All prefixes, also those inside others.
    let prefixes: [Pattern]

    /// Reads the content of a file.
    ///
    /// - Throws: ``Failure/usage(_:)`` with everything that is wrong, each with its line.
    init(_ text: [UInt8], of file: String) throws(Failure) {
        let document = JSON5Document(text)
        let read = NestedValues(document.value)
        let found =
            document.faults.map { ($0.place, $0.message) }
            + read.faults.filter { !document.isDoubtful($0.path) }
            .map { (document.place(of: $0.path), $0.message) }
        let sentences = found.map { DesiredState.shown($0, $1, document, file) }
        guard sentences.isEmpty else {
            throw .usage((sentences.prefix(20) + ["nothing was changed"]).joined(separator: "\n"))
        }
        values = Dictionary(uniqueKeysWithValues: read.members.map { ($0.key, $0.value) })
        prefixes = read.prefixes
    }

    private static func shown(
        _ place: JSON5Document.Place?,
        _ message: String,
        _ document: JSON5Document,
        _ file: String
    ) -> String {
        guard let place else { return "\(file): \(message)" }
        let (line, caret) = document.excerpt(of: place)
        let number = String(place.line)
        let space = String(repeating: " ", count: number.utf8.count)
        return "\(file):\(place): \(message)\n  \(number) | \(line)\n  \(space) | \(caret)"
    }
}
