import StateGuarantees
import Testing

/// A session written by hand, what it shows, and the guarantee that it breaks.
struct SessionCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let session: WatchSession
    let broken: Guarantee?

    init(
        _ description: String,
        breaks broken: Guarantee? = nil,
        of request: WatchSession.Request = .init(["/"]),
        at revision: Int64 = 10,
        _ events: [WatchSession.Event],
        end: WatchSession.End = .left
    ) {
        testDescription = description
        self.broken = broken
        let reply = WatchSession.Reply(revision: revision, epoch: "e")
        session = WatchSession(request, reply: reply, events, end: end)
    }

    // MARK: What the sessions are made of

    /// 15 and 17 are holes; 14 and 16 touch nothing below `a/`.
    static let record = CommitRecord([
        9: [.init("a/1", "nine")],
        10: [.init("a/2", "ten"), .init("b/1", "ten")],
        11: [.init("a/1", "eleven"), .init("b/1", nil), .init("b/9", nil)],
        12: [.init("a/1", "never"), .init("a/3", "twelve"), .init("a/1", "twelve")],
        13: [.init("a/2", nil)],
        14: [.init("b/2", "fourteen")],
        16: [.init("b/1", "sixteen")],
        18: [.init("a/1", "eighteen"), .init("b/2", nil)],
    ])

    static let c11 = change(11, .init("a/1", "eleven"), .init("b/1", nil))
    static let c12 = change(12, .init("a/3", "twelve"), .init("a/1", "twelve"))
    static let c13 = change(13, .init("a/2", nil))
    static let c14 = change(14, .init("b/2", "fourteen"))
    static let c16 = change(16, .init("b/1", "sixteen"))
    static let c18 = change(18, .init("a/1", "eighteen"), .init("b/2", nil))
    /// The state at 10.
    static let s10: [WatchSession.Piece] = [
        .init("a/1", "nine", 9), .init("a/2", "ten", 10), .init("b/1", "ten", 10),
    ]
    /// The state at 13.
    static let s13: [WatchSession.Piece] = [
        .init("a/1", "twelve", 12), .init("a/3", "twelve", 12),
    ]

    static func change(
        _ revision: Int64,
        _ changes: WatchSession.Change...
    ) -> WatchSession.Event { .change(revision, changes) }

    static let snapshot = WatchSession.Request(["/"], .snapshot)
    static let from10 = WatchSession.Request(["/"], .from(10, epoch: "e"))
    static let latest = WatchSession.Request(["/"], isLatest: true)
    static let below = WatchSession.Request(["a/"])
}
