import StateEngine
import StateWire

/// The table: which function carries out which command.
extension Dispatcher {
    func run(
        _ command: Command,
        for connection: Connection,
        in core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        switch command {
        case .get(let key): try get(key, connection, core, &receipt)
        case .set(let key, let value, let condition, let returnsOld):
            try set(key, value, condition, returnsOld: returnsOld, connection, core, &receipt)
        case .multiGet(let keys): try multiGet(keys, connection, core, &receipt)
        case .exists(let keys): try exists(keys, connection, core, &receipt)
        case .type(let key): try type(key, connection, core, &receipt)
        case .length(let key): try length(key, connection, core, &receipt)
        case .databaseSize: try databaseSize(connection, core)
        case .keys(let glob): try keys(glob, connection, core, &receipt)
        case .scan(let cursor, let match, let count):
            try scan(cursor, match, count, connection, core, &receipt)
        case .getDelete(let key): try getDelete(key, connection, core, &receipt)
        case .multiSet(let pairs, let onlyIfAllAbsent):
            try multiSet(pairs, onlyIfAllAbsent: onlyIfAllAbsent, connection, core, &receipt)
        case .delete(let keys): try delete(keys, connection, core, &receipt)
        case .append(let key, let suffix): try append(suffix, to: key, connection, core, &receipt)
        case .add(let key, let number): try add(number, to: key, connection, core, &receipt)
        case .multi: try begin(connection)
        case .execute: try execute(connection, core, &receipt)
        case .discard: try discard(connection)
        case .watchKeys(let keys): try watchKeys(keys, connection, core, &receipt)
        case .unwatchKeys:
            connection.watchedKeys = []
            connection.output.writeOK()
        case .subscribe(let names, let isPattern):
            try subscribe(names, isPattern ? .pattern : .name, connection, core)
        case .unsubscribe(let names, let isPattern):
            try unsubscribe(names, isPattern ? .pattern : .name, connection, core)
        case .publish(let channel, let message): try publish(message, to: channel, connection, core)
        case .channels(let command): try tellChannels(command, connection, core)
        case .stateGet(let key, nil): try stateGet(key, connection, core, &receipt)
        case .stateGet(let key, let revision?):
            try stateGet(key, at: revision, connection, core, &receipt)
        case .stateSet(let key, let value, let conditions, let durability):
            try stateSet(key, value, conditions, durability, connection, core, &receipt)
        case .stateApply(let steps): try stateApply(steps, connection, core, &receipt)
        case .stateDelete(let patterns, let isDryRun):
            try stateDelete(patterns, isDryRun: isDryRun, connection, core, &receipt)
        case .stateList(let pattern, let after, let limit, let form, nil):
            try stateList(pattern, after, limit, form, connection, core, &receipt)
        case .stateList(let pattern, let after, let limit, let form, let revision?):
            try stateList(pattern, after, limit, form, at: revision, connection, core, &receipt)
        case .stateWatch(let patterns, let options, let resume):
            try stateWatch(patterns, options, resume, connection, core)
        case .stateUnwatch(let watch): try stateUnwatch(watch, connection, core)
        case .stateWatches: try stateWatches(connection, core)
        case .stateHistory(let key, let limit, let revision):
            try stateHistory(key, limit, before: revision, connection, core)
        case .stateRevert(let pattern, let revision):
            try stateRevert(pattern, to: revision, connection, core, &receipt)
        case .stateChanges(let patterns, let options):
            try stateChanges(patterns, options, connection, core, &receipt)
        case .stateCompact(let revision, let shrinks):
            try stateCompact(to: revision, shrinks: shrinks, connection, core)
        case .stateStatus: stateStatus(connection, core)
        case .stateHandler(let name, let step):
            try stateHandler(name, step, connection, core, &receipt)
        case .stateHandlers: try stateHandlers(connection, core, &receipt)
        case .stateReload: try stateReload(connection, core)
        case .stateExplain(let key): try stateExplain(key, connection, core)
        case .stateRules: stateRules(connection, core)
        case .stateCheck(let pattern, let after, let limit):
            try stateCheck(pattern, after, limit, connection, core)
        case .hello, .authenticate, .ping, .echo, .quit, .reset, .select, .client, .information,
            .describe, .configuration, .configure, .time:
            try runSession(command, for: connection, in: core)
        }
    }
}
