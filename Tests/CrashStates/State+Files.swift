import Glibc

/// The files of keys, beside what is served.
extension State {
    private var rules: [Workload.Rule] { recording.rules[life].filter { $0.directory != nil } }

    /// Where the file of a key is; nil if it has none.
    private func place(of key: String) -> (directory: String, name: String)? {
        let matching = rules.filter { key.hasPrefix($0.prefix) }
        guard let rule = matching.max(by: { $0.prefix.count < $1.prefix.count }),
            let directory = rule.directory
        else { return nil }
        return (directory, String(key.dropFirst(rule.prefix.count)))
    }

    /// A key that has a file can be written at once, and its file is written when that is
    /// acknowledged.
    mutating func laterWrite(
        _ seen: Observation,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        guard let key = seen.entries.keys.sorted().last(where: { place(of: $0) != nil }),
            let place = place(of: key)
        else { return [] }
        let value = Array("later".utf8)
        connection.send(["STATE.SET", key, "later"])
        let (answer, end) = try connection.read()
        guard let revision = answer["revision"]?.number else {
            return [
                Difference(kind: .refused, text: "a write of \(key) after the start: \(answer)")
            ]
        }
        note(Commit(revision: revision, changes: [key: value]), end)
        let path = "\(plan.directory.root)/\(place.directory)/\(place.name)"
        if (try? Files.contents(of: path)) == value { return [] }
        return [Difference(kind: .files, text: "\(key) was set after the start, and not its file")]
    }

    func fileDifferences(
        _ seen: Observation,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        guard recording.rules.contains(where: { $0.contains { $0.directory != nil } }) else {
            return []
        }
        let deadline = Clock.now() + 600
        while true {
            let found = filesNow(seen)
            if found.isEmpty || Clock.now() > deadline {
                return found + (try laterCommits(seen, connection))
            }
            usleep(20_000)
        }
    }

    /// What the files are, beside what was served.
    private func filesNow(_ seen: Observation) -> [Difference] {
        var found: [Difference] = []
        for directory in StateDirectory.ruled {
            let path = "\(plan.directory.root)/\(directory)"
            var expected: [String: [UInt8]] = [:]
            for (key, entry) in seen.entries {
                guard let place = place(of: key), place.directory == directory else { continue }
                expected[place.name] = entry.value
            }
            let names = Files.files(below: path)
            for name in names where name.contains(".stated-") {
                found.append(Difference(kind: .leftover, text: "\(directory)/\(name)"))
            }
            for name in Set(names).union(expected.keys).sorted() where !name.contains(".stated-") {
                let bytes = try? Files.contents(of: "\(path)/\(name)")
                if bytes == expected[name] { continue }
                let (there, due) = (bytes?.count ?? -1, expected[name]?.count ?? -1)
                let text = "\(directory)/\(name) has \(there) bytes, and \(due) are served"
                found.append(Difference(kind: kind(of: bytes, due, seen), text: text))
            }
        }
        return found
    }

    /// What is wrong with a file: all values differ, so it is known of which key one is.
    private func kind(of bytes: [UInt8]?, _ due: Int, _ seen: Observation) -> Difference.Kind {
        guard due >= 0 else { return .stale }
        return seen.entries.values.contains { $0.value == bytes } ? .exchanged : .files
    }

    /// Files that became transactions after the state was asked for.
    private func laterCommits(
        _ seen: Observation,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        let now = try Observation(connection)
        let newest = seen.commits.last?.revision ?? seen.compacted
        return now.commits.filter { $0.revision > newest }.map {
            Difference(
                kind: .adopted,
                text: "revision \($0.revision), later: \($0.changes.keys.sorted())"
            )
        }
    }
}
