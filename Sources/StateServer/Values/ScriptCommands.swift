import CLinux
import StateEngine
import StateWire

/// EVAL and SCRIPT, without an interpreter: see ``KnownScript``.
///
/// Used only by the loop thread.
final class ScriptCommands {
    private let strings: StringCommands
    private let state: StateCommands
    /// By user: nobody empties the scripts of others.
    private var loaded: [UInt32: LoadedScripts] = [:]

    init(_ strings: StringCommands, _ state: StateCommands) {
        (self.strings, self.state) = (strings, state)
    }

    func run(_ command: Command.ScriptCommand, _ context: inout CommandContext) throws(StateError) {
        let uid = context.connection.peer.uid
        let own = loaded[uid] ?? LoadedScripts()
        switch command {
        case .run(let text, let keys, let arguments):
            guard let script = KnownScript(text: text) else { throw ScriptCommands.unknown }
            try run(script, keys, arguments, &context)
        case .runNamed(let name, let keys, let arguments):
            guard let digest = SHA1(name.text), let script = own[digest] else {
                throw StateError(
                    StateError.Code("NOSCRIPT"),
                    "No matching script. Please use EVAL."
                )
            }
            try run(script, keys, arguments, &context)
        case .load(let text):
            guard let script = KnownScript(text: text) else { throw ScriptCommands.unknown }
            let digest = SHA1(of: text)
            loaded[uid, default: LoadedScripts()].add(script, digest)
            context.output.writeBulk(digest.description)
        case .exist(let names):
            context.output.writeArray(names.count)
            for index in 0..<names.count {
                let isKnown = SHA1(names[index].text).flatMap { own[$0] } != nil
                context.output.writeInteger(isKnown ? 1 : 0)
            }
        case .flush:
            loaded[uid] = nil
            context.output.writeOK()
        }
    }

    private static let unknown = StateError(
        .err,
        "scripts are not supported; use MULTI with WATCH, STATE.SET with IFREV or IFVAL, or SET with "
            + "IFEQ. Known scripts of locks and rate limits are carried out: see docs/protocol.md"
    )

    private func run(
        _ script: KnownScript,
        _ keys: Arguments,
        _ arguments: Arguments,
        _ context: inout CommandContext
    ) throws(StateError) {
        switch script {
        case .deleteMatches where keys.count > 0:
            try state.deleteMatches(of: Pattern(redisGlob: keys[0]), &context)
        case .resetLocks:
            let glob = Array("lock:*".utf8)
            try state.deleteMatches(
                of: glob.withUnsafeBytes { Pattern(redisGlob: $0) },
                &context
            )
        default: try strings.run(script, keys, arguments, &context)
        }
    }
}

extension StateCommands {
    /// Deletes the keys that match, in one commit, and returns how many.
    fileprivate func deleteMatches(
        of pattern: Pattern,
        _ context: inout CommandContext
    ) throws(StateError) {
        let set = PatternSet([pattern])
        let limit = settings.options.stepLimit(context)
        let request = Listing.Request(
            patterns: set,
            limit: limit + 1,
            byteLimit: .max,
            subject: context.restriction,
            form: .nothing
        )
        try listings.list(request, &context) { [self] (listing, context) throws(StateError) in
            guard listing.count <= limit else { throw settings.options.tooManySteps(limit) }
            let count = try context.write { (transaction) throws(StateError) -> Int in
                try delete(listing, set, &transaction)
            }
            context.output.writeInteger(Int64(count))
        }
    }
}
