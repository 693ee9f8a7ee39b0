import StateEngine
import StateWire

/// The table of commands and the functions that run them.
extension Dispatcher {
    func run(_ command: Command, _ context: inout CommandContext) throws(StateError) {
        switch command {
        case .get(let key): try strings.get(key, &context)
        case .set(let key, let value, let condition, let returnsOld):
            try strings.set(key, value, condition, returnsOld: returnsOld, &context)
        case .multiGet(let keys): try strings.multiGet(keys, &context)
        case .length(let key): try strings.length(key, &context)
        case .getDelete(let key): try strings.getDelete(key, &context)
        case .multiSet(let pairs, let onlyIfAllAbsent):
            try strings.multiSet(pairs, onlyIfAllAbsent: onlyIfAllAbsent, &context)
        case .delete(let keys): try strings.delete(keys, &context)
        case .append(let key, let suffix): try strings.append(suffix, to: key, &context)
        case .add(let key, let number): try strings.add(number, to: key, &context)
        case .exists(let keys): try keyspace.exists(keys, &context)
        case .type(let key): try keyspace.type(key, &context)
        case .databaseSize: try keyspace.databaseSize(context)
        case .keys(let glob): try keyspace.keys(glob, &context)
        case .scan(let cursor, let match, let count):
            try keyspace.scan(cursor, match, count, &context)
        case .multi: try transactions.begin(context)
        case .execute:
            try transactions.execute(&context) { (command, context) throws(StateError) in
                try run(command, &context)
            }
        case .discard: try transactions.discard(context)
        case .watchKeys(let keys): try transactions.watchKeys(keys, &context)
        case .unwatchKeys: transactions.unwatchKeys(context)
        case .subscribe(let names, let isPattern):
            try channels.subscribe(names, isPattern ? .pattern : .name, &context)
        case .unsubscribe(let names, let isPattern):
            try channels.unsubscribe(names, isPattern ? .pattern : .name, &context)
        case .publish(let channel, let message):
            try channels.publish(message, to: channel, context)
        case .channels(let command): try channels.describe(command, context)
        case .configure(let pairs): try channels.configure(pairs, context)
        case .stateGet(let key, nil): try state.get(key, &context)
        case .stateGet(let key, let revision?): try history.get(key, at: revision, &context)
        case .stateSet(let key, let value, let conditions, let durability):
            try state.set(key, value, conditions, durability, &context)
        case .stateApply(let steps): try state.apply(steps, &context)
        case .stateDelete(let patterns, let isDryRun):
            try state.delete(patterns, isDryRun: isDryRun, &context)
        case .stateList(let pattern, let after, let limit, let form, nil):
            try state.list(pattern, after, limit, form, &context)
        case .stateList(let pattern, let after, let limit, let form, let revision?):
            try history.list(pattern, after, limit, form, at: revision, &context)
        case .stateWatch(let patterns, let options, let resume):
            try watches.watch(patterns, options, resume, context)
        case .stateUnwatch(let watch): try watches.unwatch(watch, context)
        case .stateWatches: try watches.list(context)
        case .stateHistory(let key, let limit, let revision):
            try history.history(key, limit, before: revision, context)
        case .stateRevert(let pattern, let revision):
            try history.revert(pattern, to: revision, &context)
        case .stateCompact(let revision, let shrinks):
            try history.compact(to: revision, shrinks: shrinks, context)
        case .stateChanges(let patterns, let options):
            try changes.changes(patterns, options, &context)
        case .stateHandler(let name, let step): try handlers.handler(name, step, &context)
        case .stateHandlers: try handlers.list(&context)
        case .stateReload: try rules.reload(context)
        case .stateExplain(let key): try rules.explain(key, context)
        case .stateRules: rules.list(context)
        case .stateCheck(let pattern, let after, let limit):
            try rules.check(pattern, after, limit, context)
        case .stateStatus: report.status(context)
        case .information(let sections): report.information(sections, context)
        case .hello, .authenticate, .ping, .echo, .quit, .reset, .select, .client, .describe,
            .configuration, .time:
            try session.run(command, context)
        }
    }
}
