#if canImport(Testing)
import Testing
#endif

/// A difference between what a test expected and what happened.
///
/// In a test of Swift Testing it is an issue at the line of the call, and the test ends there.
/// Elsewhere, also in a detached task, the call throws it.
public struct TestFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// One sentence; if two values differ, followed by the lines of both: `-` expected, `+` actual.
    public let message: String
    /// The file of the call, as `#fileID` names it.
    public let fileID: String
    /// The line of the call.
    public let line: Int

    init(_ message: String, at site: CallSite) {
        self.message = message
        fileID = site.fileID
        line = site.line
    }

    /// The file, the line and the message.
    public var description: String { "\(fileID):\(line): \(message)" }
}

/// The place in a test that a failure belongs to.
struct CallSite: Sendable {
    let fileID: String
    let filePath: String
    let line: Int
    let column: Int

    init(_ fileID: String, _ filePath: String, _ line: Int, _ column: Int) {
        self.fileID = fileID
        self.filePath = filePath
        self.line = line
        self.column = column
    }

    /// Whether a test of Swift Testing runs in this task.
    static var isInTest: Bool {
        #if canImport(Testing)
        Test.current != nil
        #else
        false
        #endif
    }

    /// Records an issue in a test of Swift Testing.
    ///
    /// - Returns: The error to throw.
    func failure(_ message: String) -> any Error {
        #if canImport(Testing)
        if Test.current != nil {
            let isAsExpected = false
            // The runner reports this error no second time.
            do { try #require(isAsExpected, "\(message)", sourceLocation: location) } catch {
                return error
            }
        }
        #endif
        return TestFailure(message, at: self)
    }

    /// Records an issue that no call can throw; outside of Swift Testing, ends the process.
    func record(_ message: String, isInTest: Bool) {
        #if canImport(Testing)
        if isInTest {
            Issue.record("\(message)", sourceLocation: location)
            return
        }
        #endif
        fatalError("\(TestFailure(message, at: self))")
    }

    #if canImport(Testing)
    private var location: SourceLocation {
        SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    }
    #endif
}

/// The sentence, followed by the lines of both values.
func difference(_ sentence: String, expected: Any, actual: Any) -> String {
    let (old, new) = (lines(of: expected), lines(of: actual))
    let difference = new.difference(from: old)
    var removed: Set<Int> = []
    var inserted: Set<Int> = []
    for change in difference {
        switch change {
        case .remove(let offset, _, _): removed.insert(offset)
        case .insert(let offset, _, _): inserted.insert(offset)
        }
    }
    var shown: [String] = []
    var place = 0
    for (offset, line) in old.enumerated() {
        if removed.contains(offset) {
            shown.append("- \(line)")
            continue
        }
        while inserted.contains(place) {
            shown.append("+ \(new[place])")
            place += 1
        }
        shown.append("  \(line)")
        place += 1
    }
    shown += new[place...].map { "+ \($0)" }
    return ([sentence + ": (- expected, + actual)"] + shown).joined(separator: "\n")
}

/// The lines of a value: one for each field of a structure, each element of a collection, and each
/// case around one of these, 8 levels deep.
private func lines(of value: Any, name: String = "", depth: Int = 0) -> [String] {
    let mirror = Mirror(reflecting: value)
    let indent = String(repeating: "  ", count: depth)
    let label = indent + (name.isEmpty ? "" : "\(name): ")
    switch mirror.displayStyle {
    case .struct, .class, .collection, .dictionary, .tuple:
        if mirror.children.isEmpty || depth >= 8 { break }
        let children = mirror.children.flatMap { child in
            lines(of: child.value, name: child.label ?? "", depth: depth + 1)
        }
        return [label + "\(type(of: value)) ("] + children + [indent + ")"]
    case .enum, .optional:
        guard depth < 8 else { break }
        guard let payload = mirror.children.first else { return [label + "\(value)"] }
        let name = payload.label ?? ""
        let inner = lines(of: payload.value, depth: depth + 1)
        if inner.count > 1 { return [label + "\(name)("] + inner + [indent + ")"] }
        return [label + "\(name)(\(inner[0].drop { $0 == " " }))"]
    default: break
    }
    return [label + String(reflecting: value)]
}
