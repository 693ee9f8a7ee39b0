package import StateModel

/// A command whose name, number of arguments and types were checked; it borrows the bytes of the
/// frame.
package enum Command {
    // The connection.
    case hello(version: Int64?, client: Bytes?, user: Bytes?)
    /// Without a user: the form with one argument, a password.
    case authenticate(user: Bytes?)
    case ping(Bytes?)
    case echo(Bytes)
    case quit
    case reset
    case select
    case client(ClientCommand)
    case administer(AdministrationCommand)
    case script(ScriptCommand)
    /// HELP of a verb with subcommands.
    case help(Verb.Name)
    case information(Arguments)
    case describe(DescribeCommand)
    case configuration(Arguments)
    /// CONFIG SET: names and values.
    case configure(Arguments)
    case time

    // Reads.
    case get(Bytes)
    case multiGet(Arguments)
    case exists(Arguments)
    case type(Bytes)
    case length(Bytes)
    case databaseSize
    case keys(Bytes)
    case scan(Scan)

    // Writes.
    case set(key: Bytes, value: Bytes, condition: Condition?, Expiry, returnsOld: Bool)
    case getDelete(Bytes)
    case expiry(Bytes, ExpiryStep)
    case multiSet(Arguments, onlyIfAllAbsent: Bool)
    case delete(Arguments)
    case value(ValueCommand)
    case name(KeyCommand)
    case append(key: Bytes, suffix: Bytes)
    case add(key: Bytes, Int64)

    // Transactions.
    case multi
    case execute
    case discard
    case watchKeys(Arguments)
    case unwatchKeys

    // Channels.
    case subscribe(Arguments, ChannelKind)
    /// No names: all of them.
    case unsubscribe(Arguments, ChannelKind)
    case publish(channel: Bytes, message: Bytes, isSharded: Bool)
    case channels(ChannelsCommand)

    // Our own.
    /// Without a revision: as it is now.
    case stateGet(Bytes, at: Int64?)
    case stateSet(key: Bytes, value: Bytes, conditions: Conditions, SetOptions)
    case stateApply([ApplyStep])
    case stateSync(isLocal: Bool)
    case stateDelete(Arguments, isDryRun: Bool)
    case stateList(pattern: Bytes, after: Bytes?, limit: Int, form: ListForm, at: Int64?)
    case stateWatch(Arguments, WatchOptions, Resume?)
    case stateUnwatch(Int64)
    case stateWatches
    case stateHistory(Bytes, limit: Int, before: Int64?)
    case stateRevert(pattern: Bytes, to: Int64, isDryRun: Bool)
    case stateChanges(Arguments, ChangesOptions)
    /// Up to `revision`, or as far as the retention allows.
    case stateCompact(revision: Int64?, shrinks: Bool)
    case stateBackup(BackupStep)
    case stateStatus
    case stateHandler(name: Bytes, HandlerStep)
    case stateHandlers
    case stateReload(isDryRun: Bool)
    case stateExplain(Bytes)
    case stateRules
    /// Without a pattern: all.
    case stateDefaults(Bytes?)
    /// Without a pattern: everything.
    case stateCheck(pattern: Bytes?, after: Bytes?, limit: Int)
    /// Without a claim: the connection's own.
    case stateClaim(Bytes?)
    case stateMirror(MirrorStep)
    case stateChildren(pattern: Bytes, after: Bytes?, limit: Int)

    /// SCAN.
    package struct Scan {
        package var cursor: UInt64
        package var match: Bytes?
        package var count = 10
        /// Whether TYPE allows strings, the only type that there is.
        package var includesStrings = true
    }

    /// What a subscription names.
    package enum ChannelKind: Sendable {
        case name
        case pattern
        /// A name among the shard channels.
        case shard
    }

    /// PUBSUB.
    package enum ChannelsCommand {
        case names(matching: Bytes?, ChannelKind)
        case subscriberCounts(Arguments, ChannelKind)
        case patternCount
    }

    package enum DescribeCommand {
        case all
        case count
        case documentation(Arguments)
        case information(Arguments)
        case list
        /// The keys of a command, perhaps with what it does with them.
        case keys(Verb, Arguments, withFlags: Bool)
    }

    package enum ListForm {
        case entries
        /// With all details of each entry.
        case long
        case keys
        case count
    }

    package struct Conditions {
        /// NX or XX.
        package var presence: Condition?
        /// IFREV.
        package var revision: Condition?
        /// IFVAL.
        package var value: Condition?
    }

    /// Further options of STATE.SET.
    package struct SetOptions {
        package var durability: Durability?
        package var expiry = Expiry.ruled
    }

    /// What a watch delivers in addition to the changes.
    package struct WatchOptions: OptionSet, Sendable {
        package let rawValue: Int
        /// First a snapshot, in pieces.
        package static let snapshot = WatchOptions(rawValue: 1)
        /// The value that each change replaced.
        package static let previous = WatchOptions(rawValue: 2)
        /// Who made each change.
        package static let by = WatchOptions(rawValue: 4)
        /// The latest value of each key, in rounds, instead of each commit.
        package static let latest = WatchOptions(rawValue: 8)

        package init(rawValue: Int) { self.rawValue = rawValue }

        private static let named: [(StaticString, WatchOptions)] = [
            ("SNAPSHOT", .snapshot), ("LATEST", .latest), ("PREVIOUS", .previous), ("BY", .by),
        ]

        /// The options as words of the wire.
        package var words: [StaticString] {
            WatchOptions.named.filter { contains($0.1) }.map(\.0)
        }

        /// The option that an argument names, in any case.
        init?(_ arguments: Arguments, _ index: Int) {
            let found = WatchOptions.named.first { arguments.isWord(index, $0.0) }
            guard let found else { return nil }
            self = found.1
        }
    }

    /// A step of a backup.
    package enum BackupStep {
        /// Begins one at the present revision; with `since`, of the changes after that revision of
        /// an epoch, as written.
        case begin(includesHistory: Bool, since: (revision: Int64, epoch: Bytes)?)
        /// The next piece.
        case next
        case end
    }

    /// An operation on a named handler.
    package enum HandlerStep {
        /// Claims it for the connection; creates it if it is absent or `isReset`.
        case attach(from: HandlerStart, isReset: Bool, Arguments)
        /// Everything up to a revision is handled.
        case done(Int64)
        case forget
    }

    /// Where a new handler begins.
    package enum HandlerStart {
        case now
        case revision(Int64)
        /// With a snapshot.
        case snapshot
    }

    /// FROM, and the EPOCH of its revision.
    package struct Resume {
        package var revision: Int64
        package var epoch: Bytes?
    }

    /// What STATE.CHANGES returns, and how long it waits.
    package struct ChangesOptions {
        /// Only commits after this one.
        package var since: Int64
        /// The epoch that the caller knows, as written; nil if not given.
        package var epoch: Bytes?
        /// How many commits at most.
        package var count = Int.max
        /// How many milliseconds to wait if there is no commit; 0 waits forever, nil not at all.
        package var block: Int64?
        /// Also the value that each change replaced.
        package var includesPrevious = false
    }

    package enum ApplyStep {
        case set(Bytes, Bytes, revision: Int64?, Expiry)
        case delete(Bytes, revision: Int64?)
        case check(Bytes, revision: Int64)
        /// The last step of a dry run.
        case undo
    }
}
