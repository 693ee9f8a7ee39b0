package import StateModel

/// A file of another program, read as that program reads it.
///
/// Where the programs that read such files differ, the line is an error: what a person expects of
/// it is not certain. Each format is in a file of its own.
package struct ImportDocument {
    /// A kind of file.
    package enum Format: String, CaseIterable, Sendable {
        /// `NAME=value`, as dotenv, a shell and the `EnvironmentFile` of systemd read it.
        case env
        /// `[section]` and `key = value`.
        case ini
        /// As `java.util.Properties` reads it.
        case properties

        /// The format of files with such names: `.env`, `NAME.env`, `.env.NAME`, `NAME.ini` and
        /// `NAME.properties`; nil for any other name.
        package init?(fileName: [UInt8]) {
            let dot = UInt8(ascii: ".")
            let parts = fileName.split(separator: dot, omittingEmptySubsequences: false)
            guard let last = parts.last, parts.count > 1 else { return nil }
            let isEnvironment = parts[0].isEmpty && parts[1].elementsEqual("env".utf8)
            self.init(rawValue: isEnvironment ? "env" : String(decoding: last, as: UTF8.self))
        }
    }

    /// The longest text, in bytes.
    package static let byteLimit = 4 << 20

    /// The first line of the entry that was read last; after an error, the line with the fault.
    package internal(set) var line = 0
    /// The section of an INI file that the next line is in.
    var section: [UInt8] = []
    /// By how much the last option of an INI file is indented, and 0 behind the line of a section.
    var indentation: Int?

    private let format: Format
    private let text: [UInt8]
    private var offset = 0
    /// How many lines were read.
    private var lineCount = 0
    /// The lines of the keys.
    private var lines: [[UInt8]: Int] = [:]

    /// Takes a text of at most ``byteLimit`` bytes, without a BOM.
    package init(_ text: [UInt8], _ format: Format) {
        self.format = format
        self.text = text
    }

    /// The next entry; nil at the end.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``: what is wrong in ``line``.
    package mutating func next() throws(StateError) -> ImportLine? {
        let entry =
            switch format {
            case .env: try nextVariable()
            case .ini: try nextOption()
            case .properties: try nextProperty()
            }
        guard let entry else { return nil }
        if let first = lines.updateValue(line, forKey: entry.name) {
            throw StateError(
                .err,
                "the key \(StateError.quoted(entry.key)) is in line \(first) already; keep one of them"
            )
        }
        return entry
    }

    /// The next line without its line end; nil at the end.
    mutating func nextLine() throws(StateError) -> ArraySlice<UInt8>? {
        guard offset < text.count else { return nil }
        let end = text[offset...].firstIndex(of: UInt8(ascii: "\n")) ?? text.count
        var content = text[offset..<end]
        offset = end + 1
        lineCount += 1
        if content.last == UInt8(ascii: "\r") { content.removeLast() }
        if let fault = fault(in: content) {
            line = lineCount
            throw fault
        }
        return content
    }

    /// The first line of an entry, which is neither empty nor a comment; nil at the end.
    mutating func nextFirstLine(comments: String) throws(StateError) -> ArraySlice<UInt8>? {
        while let content = try nextLine() {
            guard let first = content.trimmed.first, !comments.utf8.contains(first) else {
                continue
            }
            line = lineCount
            return content
        }
        return nil
    }

    private func fault(in content: ArraySlice<UInt8>) -> StateError? {
        content.withUnsafeBytes { bytes in
            if !UTF8Sequence.isValid(bytes) {
                return StateError(
                    .err,
                    "the line is not UTF-8: convert the file, as with iconv -f ISO-8859-1 -t UTF-8"
                )
            }
            do throws(StateError) {
                try ForeignText.checkLine(bytes)
                return nil
            } catch {
                return error
            }
        }
    }
}
