import CFuzzer
import Glibc
import StateEngine
import StateRules

/// A configuration as `--check-config` reads it, and the rules of one that can be used.
enum ConfigurationTarget {
    private static let keys = ["a", "a/b", "a/b/c", "audio/volume", "lease/1", "x"]
    private static let values = [
        "", "1", "-0.5e3", "\"a\"", "[1,[2]]", "{\"a\":{\"b\":null}}", "text",
    ]

    static func run(_ bytes: Bytes) throws {
        let file = cfuzzer_memory_file()
        require(file >= 0, "no memory file: \(lastSystemError())")
        defer { close(file) }
        require(write(file, bytes.baseAddress, bytes.count) == bytes.count, lastSystemError())
        lseek(file, 0, SEEK_SET)
        let configuration: Configuration
        let findings = ConfigurationFindings()
        defer { for note in findings.errors + findings.warnings { _ = note.details } }
        do throws(StateError) {
            configuration = try ConfigurationFile.read("/proc/self/fd/\(file)", findings)
        } catch {
            require(!error.message.isEmpty, "an error without a message")
            return
        }
        for key in keys {
            var key = key
            key.withUTF8 { check(configuration.rules.byKey, Bytes($0)) }
        }
        _ = configuration.rules.byKey.descriptions
    }

    private static func check(_ rules: KeyRules, _ key: Bytes) {
        _ = rules.explanation(of: key)
        guard let rule = rules.rule(for: key) else { return }
        for value in values {
            var value = value
            _ = value.withUTF8 {
                rule.settings.schema?.value.issues(of: Bytes($0), depthLimit: rule.values.depth)
            }
        }
    }
}
