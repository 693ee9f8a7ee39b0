import Foundation
import StateEngine

/// The defaults of a suite, or of this program.
///
/// Foundation guards the defaults: the proof of `@unchecked Sendable`.
struct DefaultsSuite: @unchecked Sendable {
    let name: String
    private let defaults: UserDefaults
    /// The name of its persistent domain.
    private let domain: String

    /// - Throws: ``StateError/Code/invalidRequest`` for an invalid name.
    init(_ name: String?) throws(StateError) {
        guard let name else {
            self.name = ProcessInfo.processInfo.processName
            defaults = .standard
            domain = DefaultsSuite.domainOfProgram
            return
        }
        guard let defaults = UserDefaults(suiteName: name) else {
            throw StateError(.err, "'\(name)' is not a valid name for a suite of defaults")
        }
        self.name = name
        self.defaults = defaults
        domain = name
    }

    private static var domainOfProgram: String {
        #if canImport(Darwin)
        Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        #else
        // CoreFoundation's name of it; the name of the process is another domain.
        "kCFPreferencesCurrentApplication"
        #endif
    }

    /// Reads everything, also what other processes have written to the file.
    func read() -> [String: PropertyList] {
        defaults.synchronize()
        return (defaults.persistentDomain(forName: domain) ?? [:]).mapValues { PropertyList($0) }
    }

    func set(_ value: PropertyList?, for name: String) {
        if let value {
            defaults.set(value.object, forKey: name)
        } else {
            defaults.removeObject(forKey: name)
        }
    }

    /// Writes what was set.
    ///
    /// - Returns: Whether it was written.
    func synchronize() -> Bool { defaults.synchronize() }
}
