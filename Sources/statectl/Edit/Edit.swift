import Glibc
import StateClient
import StateModel

extension Statectl {
    /// `edit KEY`: a value in an editor, set only if nobody else changed it meanwhile.
    static func edit(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let key = try invocation.key()
        let client = try invocation.connect()
        let entry = try attempt(try client.entry(for: key))
        let value = entry?.value ?? []
        let name = key.bytes.withUnsafeBytes { StateError.quoted($0) }
        guard EditedFile.isText(value) else {
            throw .usage(
                "the value of key \(name) is not text; use 'statectl get KEY --raw > FILE' and "
                    + "'statectl set KEY - --raw < FILE' to change it"
            )
        }
        try checkWriting(value, of: key, client)
        let file = try EditedFile(value, of: key)
        while true {
            try file.edit()
            let edited = try file.value()
            guard edited != value else {
                file.remove()
                guard !invocation.isJSON else {
                    return output.write(json: ["revision": .number(entry?.revision ?? 0)])
                }
                return output.write("unchanged\n")
            }
            do throws(StateError) {
                let revision = try set(edited, for: key, at: entry?.revision ?? 0, invocation)
                file.remove()
                guard !invocation.isJSON else {
                    return output.write(json: ["revision": .number(revision)])
                }
                return output.write("set at revision \(revision)\n")
            } catch {
                guard error.code == .rejected || error.code == .tooBig, mayAskAgain(error) else {
                    throw kept(file, error, shellWord(key.bytes))
                }
            }
        }
    }

    /// Refuses a key that may not be written, before anybody has edited it.
    ///
    /// It sets the value to itself in a transaction that cannot succeed, because the key is then not
    /// at the revision that the last step names.
    private static func checkWriting(
        _ value: [UInt8],
        of key: Key,
        _ client: Client
    ) throws(Failure) {
        do throws(StateError) {
            try client.apply([.set(key, value), .check(key, revision: Int64.max)])
        } catch {
            // A value that is not set yet, or not valid any more, may be refused for itself.
            let isFixed = [", readonly)", ", writeOnce)"].contains { error.message.hasSuffix($0) }
            if error.code == .noPermission || error.code == .rejected && isFixed {
                throw .refused(error)
            }
        }
    }

    /// Uses a new connection: the daemon may have restarted while the editor was open.
    private static func set(
        _ value: [UInt8],
        for key: Key,
        at revision: Int64,
        _ invocation: Invocation
    ) throws(StateError) -> Int64 {
        let client = try invocation.newClient()
        return try client.set(value, for: key, if: .revision(revision)).revision
    }

    /// Shows the error on the terminal and asks whether to edit again.
    private static func mayAskAgain(_ error: StateError) -> Bool {
        guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return false }
        Output.report(error.description)
        Output.writeError("edit again? [Y/n] ")
        var input = Input()
        guard let answer = try? input.nextLine() else { return false }
        return answer.first.map { $0 | 0x20 != UInt8(ascii: "n") } ?? true
    }

    /// A key as one word of a shell: others may have chosen it.
    private static func shellWord(_ key: [UInt8]) -> String {
        let text = String(decoding: key, as: UTF8.self)
        let parts = text.split(separator: "'", omittingEmptySubsequences: false)
        return (text.hasPrefix("-") ? "-- '" : "'") + parts.joined(separator: "'\\''") + "'"
    }

    /// The refusal, and the path of the file with the edited text.
    private static func kept(_ file: EditedFile, _ error: StateError, _ name: String) -> Failure {
        file.keep()
        var sentence = "\(error.message); your text is saved in \(file.path)"
        if error.code == .conflict {
            sentence +=
                "; to compare: statectl get \(name) | diff - \(file.path); "
                + "to set it: statectl set \(name) - < \(file.path)"
        }
        return .refused(StateError(error.code, sentence))
    }
}
