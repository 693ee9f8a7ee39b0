import StateEngine
import StateWire

/// CLIENT TRACKING and its relatives.
extension ClientCommands {
    func track(
        _ request: Command.TrackingRequest?,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        guard let request else {
            tracking.end(context.connection, context.core)
            return context.output.writeOK()
        }
        try tracking.begin(request, context)
        context.output.writeOK()
    }

    func setCaching(_ isOn: Bool, _ context: borrowing CommandContext) throws(StateError) {
        guard let client = context.connection.session.tracking, let isOptional = client.isOptional
        else {
            throw StateError(
                .err,
                "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
                    + "OPTOUT mode enabled"
            )
        }
        guard isOptional == isOn else {
            throw StateError(
                .err,
                "CLIENT CACHING \(isOn ? "YES" : "NO") is only valid when tracking is enabled in "
                    + "\(isOn ? "OPTIN" : "OPTOUT") mode."
            )
        }
        client.caching = isOn
        context.output.writeOK()
    }

    func writeRedirection(_ context: borrowing CommandContext) {
        let client = context.connection.session.tracking
        context.output.writeInteger(client.map { Int64($0.redirection ?? 0) } ?? -1)
    }

    func writeTracking(_ context: borrowing CommandContext) {
        let client = context.connection.session.tracking
        var flags: [StaticString] = [client == nil ? "off" : "on"]
        if let client {
            if client.isBroadcast { flags.append("bcast") }
            if let isOptional = client.isOptional { flags.append(isOptional ? "optin" : "optout") }
            if client.caching == true { flags.append("caching-yes") }
            if client.caching == false { flags.append("caching-no") }
            if client.leavesOutOwn { flags.append("noloop") }
            if client.isBroken { flags.append("broken_redirect") }
        }
        context.output.writeMap(3, context.version)
        context.output.writeBulk("flags")
        context.output.writeArray(flags.count)
        for flag in flags { context.output.writeBulk(flag) }
        context.output.writeBulk("redirect")
        writeRedirection(context)
        let prefixes = client?.prefixes ?? []
        context.output.writeBulk("prefixes")
        context.output.writeArray(prefixes.count)
        for prefix in prefixes { context.output.writeBulk(prefix) }
    }
}
