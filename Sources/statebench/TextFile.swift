import Glibc
import StateSystem

/// Small files.
enum TextFile {
    /// The text of a file; nil if it cannot be read.
    static func read(_ path: String) -> String? {
        guard let file = try? NamedFile.open(path, O_RDONLY) else { return nil }
        defer { close(file) }
        return NamedFile.contents(of: file).map { String(decoding: $0, as: UTF8.self) }
    }

    static func write(_ text: String, to path: String) throws(BenchError) {
        guard let file = fopen(path, "w") else { throw .system("fopen '\(path)'") }
        let result = fputs(text, file)
        guard fclose(file) == 0, result >= 0 else { throw .system("write '\(path)'") }
    }
}
