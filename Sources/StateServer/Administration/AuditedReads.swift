import CLinux
import StateEngine
import StateWire

/// Lines of the log for reads of keys whose rule has `audit: "reads"`.
///
/// A read is a command that gives its client a value, or moves one to another key. It is logged when
/// it runs, if the client may have the value: once a minute for each user, command and key, then the
/// number. A command about a pattern is one line with the pattern; so is a watch, at its start: what
/// it is delivered later are changes, each of which is logged.
extension ReplyGate {
    /// Logs what a command reads that is about to run, alone or as a step of a transaction.
    @inline(never)
    func logReads(
        _ command: Command,
        _ verb: Verb.Name,
        _ context: borrowing CommandContext
    ) {
        let name = verb.rawValue.uppercased()
        switch command {
        case .get(let key), .getDelete(let key), .expiry(let key, .get),
            .set(let key, _, _, _, returnsOld: true), .stateGet(let key, nil),
            .value(.digest(let key)), .value(.range(let key, _, _)),
            .value(.set(let key, _, _, _, returnsOld: true)), .name(.dump(let key)),
            .name(.copy(let key, _, _)), .name(.rename(let key, _, _)):
            logRead(of: key, name, context)
        case .multiGet(let keys), .value(.script(_, let keys, _)):
            for index in 0..<keys.count { logRead(of: keys[index], name, context) }
        case .stateGet(let key, _), .stateHistory(let key, _, _):
            logRead(of: key, name, mayBePast: true, context)
        case .stateList(let pattern, _, _, let form, _) where form.hasValues:
            logRead(matching: pattern, name, context)
        // What a rule refuses is quoted.
        case .stateCheck(let pattern, _, _), .stateDefaults(let pattern):
            logRead(matching: pattern, name, context)
        case .stateWatch(let patterns, _, _), .stateChanges(let patterns, _):
            for index in 0..<patterns.count {
                logRead(matching: patterns[index], name, to: .watch, context)
            }
        case .stateBackup(.begin), .administer(.monitor), .administer(.slowLog(.get)):
            logReadOfAll(name, context)
        default: break
        }
    }

    private func logRead(
        of key: Bytes,
        _ name: String,
        to action: KeyAction = .read,
        mayBePast: Bool = false,
        _ context: borrowing CommandContext
    ) {
        let rule = context.core.auditOfReading(
            key,
            action,
            by: context.restriction,
            mayBePast: mayBePast
        )
        guard let rule else { return }
        logRead(key, rule, name, "key", context)
    }

    private func logRead(
        matching text: Bytes?,
        _ name: String,
        to action: KeyAction = .read,
        _ context: borrowing CommandContext
    ) {
        guard let text else {
            return Pattern.everything.bytes.withUnsafeBytes {
                logRead(matching: $0, name, to: action, context)
            }
        }
        guard let pattern = try? Pattern(text) else { return }
        guard pattern.kind != .key else {
            return pattern.literal.withUnsafeBytes {
                logRead(of: $0, name, to: action, mayBePast: true, context)
            }
        }
        let subject = context.restriction
        guard let rule = context.core.auditOfReading(matching: pattern, action, by: subject) else {
            return
        }
        logRead(text, rule, name, "keys", context)
    }

    /// A backup has all values, whatever rules hide, and MONITOR and SLOWLOG show those of others'
    /// commands; only administrators get them.
    private func logReadOfAll(_ name: String, _ context: borrowing CommandContext) {
        let all = Pattern.everything
        guard context.isAdmin,
            let rule = context.core.auditOfReading(matching: all, .read, by: nil)
        else { return }
        all.bytes.withUnsafeBytes { logRead($0, rule, name, "keys", context) }
    }

    private func logRead(
        _ keys: Bytes,
        _ rule: RulePlace,
        _ name: String,
        _ noun: String,
        _ context: borrowing CommandContext
    ) {
        let connection = context.connection
        let peer = connection.peer
        let kind = RepeatedLines.Kind(
            subject: .read(keys: Array(keys), command: name),
            uid: peer.uid
        )
        write(kind, .notice) {
            let shown = StateError.quoted(keys, upTo: keys.count)
            let text =
                "audit: read by uid \(peer.uid), pid \(peer.pid) "
                + "(\(connection.shownPeerCommand)), \(name), \(rule): \(noun) \(shown)"
            let about = [LogField.key(keys), .rule(rule.index), .action("read")]
            return (text, connection.logFields + about)
        }
    }
}

extension Command.ListForm {
    /// Whether a row has the value.
    fileprivate var hasValues: Bool {
        switch self {
        case .entries, .long: true
        case .keys, .count: false
        }
    }
}
