extension VerbDocumentation {
    static let ofStated: [VerbDocumentation] = [
        .init(.stateGet, .state, "key [AT revision]"),
        .init(
            .stateSet,
            .state,
            """
            key value [NX | XX] [IFREV revision] [IFVAL value] [EXPIRES time | LIFETIME <connection | \
            process>] [DURABILITY <memory | interval | synced>]
            """
        ),
        .init(.stateApply, .state, "count step [step ...] [DRYRUN]"),
        .init(.stateDelete, .state, "pattern [pattern ...] [DRYRUN]"),
        .init(
            .stateList,
            .state,
            "pattern [AFTER key] [LIMIT count] [KEYS | COUNT | LONG | CHILDREN] [AT revision]"
        ),
        .init(
            .stateWatch,
            .state,
            """
            pattern [pattern ...] [SNAPSHOT] [FROM revision] [EPOCH epoch] [LATEST] \
            [PREVIOUS] [BY]
            """
        ),
        .init(.stateUnwatch, .state, "watch"),
        .init(.stateWatches, .state),
        .init(.stateHistory, .state, "key [LIMIT count] [BEFORE revision]"),
        .init(.stateRevert, .state, "pattern TO revision [DRYRUN]"),
        .init(
            .stateChanges,
            .state,
            """
            SINCE revision [EPOCH epoch] [COUNT count] [BLOCK milliseconds] [PREVIOUS] \
            pattern [pattern ...]
            """
        ),
        .init(.stateCompact, .state, "[TO revision] [SHRINK]"),
        .init(
            .stateBackup,
            .state,
            "<BEGIN [NOHISTORY | SINCE revision EPOCH epoch] | NEXT | END>"
        ),
        .init(.stateStatus, .state),
        .init(.stateMetrics, .state),
        .init(.stateTop, .state),
        .init(.stateMoment, .state, "milliseconds"),
        .init(.stateSync, .state, "[LOCAL]"),
        .init(
            .stateHandler,
            .state,
            "<ATTACH name pattern [pattern ...] | DONE name revision | FORGET name>"
        ),
        .init(.stateHandlers, .state),
        .init(.stateReload, .state, "[DRYRUN]"),
        .init(.stateExplain, .state, "key"),
        .init(.stateRules, .state),
        .init(.stateDefaults, .state, "[pattern]"),
        .init(.stateCheck, .state, "[pattern] [AFTER key] [LIMIT count]"),
        .init(.stateClaim, .state, "[claim]"),
        .init(
            .stateMirror,
            .state,
            """
            <BEGIN | COMMIT after revision stamp [BY node text] [SET key version value \
            | REPLACE key version value | DELETE key ...] | BEAT revision age refused \
            | AWAY reason | RESYNC history reason | ROWS key version value ... \
            | SYNCED revision stamp | READY operations bytes | REFUSING code reason \
            | FAILED batch code reason>
            """
        ),
    ]
}
