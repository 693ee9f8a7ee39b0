import StateClient
import StateModel

extension Statectl {
    /// How often values are read anew because somebody else has changed one of them.
    private static let conversionAttempts = 10

    /// `convert PATTERN -- COMMAND…`: replaces values by what a command makes of them, in one
    /// commit.
    static func convert(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        guard let command = invocation.command, !command.isEmpty else {
            throw .usage("convert: name a command after --, which reads a value and prints another")
        }
        let child = try ChildCommand(arguments: command, of: "convert")
        var conversion = Conversion(
            pattern: try invocation.pattern(),
            filter: ValueFilter(command: child, keepsLineBreak: invocation.has("--raw")),
            takesEvery: invocation.has("--every")
        )
        let client = try invocation.connect()
        let isDryRun = invocation.has("--dry-run")
        var commit: Client.Commit?
        for attempt in 1... {
            try conversion.run(client)
            guard !isDryRun, conversion.refusals.isEmpty, !conversion.changes.isEmpty else { break }
            do throws(StateError) {
                let steps = conversion.changes.steps(isDryRun: false)
                commit = try client.apply(steps, isDryRun: false, keepsTimes: true)
                break
            } catch {
                guard error.code == .conflict, attempt < conversionAttempts else {
                    throw .refused(error)
                }
            }
        }
        if isDryRun || conversion.refusals.isEmpty {
            let isJSON = invocation.isJSON
            try conversion.changes.write(commit, isDryRun: isDryRun, isJSON: isJSON, &output)
        }
        guard !conversion.refusals.isEmpty else { return }
        try output.flush()
        for (key, refusal) in conversion.refusals {
            let name = key.bytes.withUnsafeBytes { StateError.quoted($0) }
            Output.report("key \(name): \(refusal.sentence)")
        }
        let count = conversion.refusals.count
        Output.report("values that were not converted: \(count); nothing was changed")
        throw .found
    }
}

/// Values and what a command makes of them.
private struct Conversion {
    let pattern: Pattern
    let filter: ValueFilter
    /// Whether it takes all values; else those that a rule refuses now.
    let takesEvery: Bool

    private(set) var changes = KeyChanges([])
    private(set) var refusals: [(key: Key, refusal: Refusal)] = []
    /// What the command has made of a value, by its key and revision.
    private var results: [Key: (revision: Int64, result: Result<[UInt8], Refusal>)] = [:]

    init(pattern: Pattern, filter: ValueFilter, takesEvery: Bool) {
        (self.pattern, self.filter, self.takesEvery) = (pattern, filter, takesEvery)
    }

    /// Reads the values, and runs the command for each that it has not seen yet.
    mutating func run(_ client: Client) throws(Failure) {
        var found: [KeyChanges.Change] = []
        refusals = []
        for (key, value, revision) in try attempt(try values(client)) {
            let result: Result<[UInt8], Refusal>
            if let known = results[key], known.revision == revision {
                result = known.result
            } else {
                result = try converted(value, of: key, revision, client)
                results[key] = (revision, result)
            }
            switch result {
            case .failure(let refusal): refusals.append((key, refusal))
            case .success(let new) where new == value: break
            case .success(let new):
                found.append(
                    KeyChanges.Change(key: key, before: value, after: new, revision: revision)
                )
            }
        }
        changes = KeyChanges(found)
    }

    private func converted(
        _ value: [UInt8],
        of key: Key,
        _ revision: Int64,
        _ client: Client
    ) throws(Failure) -> Result<[UInt8], Refusal> {
        let result = filter.run(value, of: key, revision: revision)
        guard case .success(let new) = result else { return result }
        do throws(StateError) {
            try client.apply([.set(key, new)], isDryRun: true, keepsTimes: true)
            return result
        } catch {
            guard [.rejected, .noPermission, .limit, .tooBig].contains(error.code) else {
                throw .refused(error)
            }
            return .failure(Refusal("what the command printed is refused: \(error.message)"))
        }
    }

    private func values(
        _ client: Client
    ) throws(StateError) -> [(key: Key, value: [UInt8], revision: Int64)] {
        var found: [(key: Key, value: [UInt8], revision: Int64)] = []
        guard !takesEvery else {
            var pages = client.pages(of: pattern)
            while let page = try pages.next() {
                for entry in page {
                    found.append((try Key(bytes: entry.key), entry.value ?? [], entry.revision))
                }
            }
            return found
        }
        var next: [UInt8]?
        repeat {
            let page = try client.refusals(of: pattern, after: next)
            var keys: [Key] = []
            for value in page.values { keys.append(try Key(bytes: value.key)) }
            for (key, entry) in zip(keys, try client.entries(for: keys)) {
                guard let entry, !entry.isDefault else { continue }
                found.append((key, entry.value, entry.revision))
            }
            next = page.next
        } while next != nil
        return found
    }
}
