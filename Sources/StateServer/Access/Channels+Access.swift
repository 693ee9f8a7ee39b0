import StateEngine
import StateWire

/// What rules match for a channel: its name, or the key if it is the channel of one key.
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
    /// Who may receive the messages of a channel; nil: everybody.
    func audience(ofChannel name: Bytes) -> Audience? {
        audience(of: ChannelKey(name).bytes, .watch, .unowned)
    }

    /// Who may see a change; nil: everybody.
    func audience(of change: Record, _ action: KeyAction = .watch) -> Audience? {
        audience(of: change.key, action, .entry(owner: change.owner))
    }
}

extension Visibility {
    /// Whether its subject may see that a channel has subscribers.
    func mayReceive(_ channel: ChannelKey) -> Bool {
        mayEverReveal(.watch, about: channel.bytes, channel.target)
    }
}

extension CommandContext {
    /// Refuses names of channels if the connection could never receive a message of one of them.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the channel and the rule.
    func requireReceiving(_ names: Arguments) throws(StateError) {
        guard let subject = restriction else { return }
        for index in 0..<names.count {
            let key = ChannelKey(names[index])
            try core.requireAny(.watch, of: key.bytes, for: subject, key.target, called: "channel")
        }
    }

    /// Refuses a message to a channel that the connection may not write.
    ///
    /// A message that looks like a keyspace notification also needs the right to write that key.
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
