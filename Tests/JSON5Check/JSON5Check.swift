import StateJSON
import StateModel

/// Reads JSON5 texts for scripts/json5: a line of hexadecimal digits each.
///
/// Answers with a line each: the value in JSON, or `!` and the
/// first fault.
@main
enum JSON5Check {
    static func main() {
        while let line = readLine() {
            let digits = Array(line.utf8)
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).map { index in
                UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16) ?? 0
            }
            let document = JSON5Document(bytes)
            if let fault = document.faults.first {
                print("!\(StateError.printable(fault.description))")
            } else if let text = try? document.value.text() {
                print(String(decoding: text, as: UTF8.self))
            } else {
                print("!the value cannot be written")
            }
        }
    }
}
