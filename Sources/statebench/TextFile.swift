import Glibc

/// Small files.
enum TextFile {
    /// The text of a file; nil if it cannot be read.
    static func read(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func write(_ text: String, to path: String) throws(BenchError) {
        guard let file = fopen(path, "w") else { throw .system("fopen '\(path)'") }
        let result = fputs(text, file)
        guard fclose(file) == 0, result >= 0 else { throw .system("write '\(path)'") }
    }
}
