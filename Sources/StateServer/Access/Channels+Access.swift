import StateEngine
import StateWire

extension Channel {
    /// Its subscribers who may hear a message.
    func subscribers(in audience: Audience?) -> [Int: Connection] {
        guard let audience else { return subscribers }
        return subscribers.filter { audience.admits($0.value.subject) }
    }
}

/// What the rules match of a channel: its name, and of a channel that tells of one key that key.
struct ChannelKey {
    let bytes: Bytes
    let target: AccessTarget

    init(_ name: Bytes) {
        let keyspace = Bytes(KeyspaceNotices.keyspace)
        let isOfKey = name.hasPrefix(keyspace)
        bytes = isOfKey ? name.slice(keyspace.count, name.count) : name
        target = isOfKey ? .any : .unowned
    }
}

extension KeyspaceCore {
    /// Who may hear what is sent to a channel; nil: everybody.
    func audience(ofChannel name: Bytes) -> Audience? {
        audience(of: ChannelKey(name).bytes, .unowned)
    }

    /// Who may hear of a change; nil: everybody.
    func audience(of change: Record) -> Audience? {
        audience(of: change.key, .entry(owner: change.owner))
    }
}

extension CommandContext {
    /// Refuses names of channels among which is one of which the connection would never hear.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the channel and the rule.
    func requireHearing(_ names: Arguments) throws(StateError) {
        guard let subject = restriction else { return }
        for index in 0..<names.count {
            let key = ChannelKey(names[index])
            try core.requireAny(.watch, of: key.bytes, for: subject, key.target, called: "channel")
        }
    }

    /// Whether the connection is told that somebody subscribes to a channel.
    func mayReceive(_ name: [UInt8]) -> Bool {
        let visibility = core.visibility(of: connection.subject)
        return name.withUnsafeBytes { name in
            let key = ChannelKey(name)
            return visibility.mayEverReveal(.watch, about: key.bytes, key.target)
        }
    }

    /// Refuses a message to a channel that the connection may not write; one that looks as if it told of a key, if that key is
    /// not to be written by it.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the channel and the rule.
    func requirePublish(_ message: Bytes, to name: Bytes) throws(StateError) {
        guard let subject = restriction else { return }
        let key = ChannelKey(name).bytes
        try core.requireAny(.write, of: key, for: subject, .unowned, called: "channel")
        guard name.hasPrefix(Bytes(KeyspaceNotices.keyEvent)) else { return }
        try core.requireAny(.write, of: message, for: subject, .unowned, called: "channel of key")
    }
}
