package import StateEngine

/// A command whose name, number of arguments and types have been checked; its bytes are borrowed from the frame.
package enum Command {
    // The connection.
    case hello(version: Int64?, client: Bytes?, user: Bytes?)
    /// Without a user: the form of one argument, a password.
    case authenticate(user: Bytes?)
    case ping(Bytes?)
    case echo(Bytes)
    case quit
    case reset
    case select
    case client(ClientCommand)
    case information(Arguments)
    case describe(DescribeCommand)
    case configuration(Arguments)
    case time

    // Reads.
    case get(Bytes)
    case multiGet(Arguments)
    case exists(Arguments)
    case type(Bytes)
    case length(Bytes)
    case databaseSize
    case keys(Bytes)
    case scan(cursor: UInt64, match: Bytes?, count: Int)

    // Writes.
    case set(key: Bytes, value: Bytes, condition: Condition?, returnsOld: Bool)
    case getDelete(Bytes)
    case multiSet(Arguments, onlyIfAllAbsent: Bool)
    case delete(Arguments)
    case append(key: Bytes, suffix: Bytes)
    case add(key: Bytes, Int64)

    // Transactions.
    case multi
    case execute
    case discard
    case watchKeys(Arguments)
    case unwatchKeys

    // Our own.
    case stateGet(Bytes)
    case stateSet(key: Bytes, value: Bytes, conditions: Conditions, durability: Durability)
    case stateApply([ApplyStep])
    case stateDelete(Arguments, isDryRun: Bool)
    case stateList(pattern: Bytes, after: Bytes?, limit: Int, form: ListForm)
    case stateWatch(Arguments, WatchOptions)
    case stateUnwatch(Int64)
    case stateHistory(Bytes, limit: Int)
    /// To `revision`, or to where the retention says.
    case stateCompact(revision: Int64?, shrinks: Bool)
    case stateStatus

    package enum ClientCommand {
        case setName(Bytes)
        case getName
        case setInformation
        case identify
        case information
        case list
    }

    package enum DescribeCommand {
        case all
        case count
        case documentation(Arguments)
        case information(Arguments)
        case list
    }

    package enum ListForm {
        case entries
        /// With all that is kept of each.
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

    /// What a watch tells beside the changes.
    package struct WatchOptions: OptionSet, Sendable {
        package let rawValue: Int
        /// First the state, in pieces.
        package static let snapshot = WatchOptions(rawValue: 1)
        /// The value that each change replaced.
        package static let previous = WatchOptions(rawValue: 2)
        /// Who made each change.
        package static let by = WatchOptions(rawValue: 4)

        package init(rawValue: Int) { self.rawValue = rawValue }
    }

    package enum ApplyStep {
        case set(Bytes, Bytes, revision: Int64?)
        case delete(Bytes, revision: Int64?)
        case check(Bytes, revision: Int64)
    }
}
