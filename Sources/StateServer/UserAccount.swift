import CLinux

/// What the connections of one user cost together.
///
/// Everything belongs to the loop thread.
final class UserAccount {
    let uid: UInt32
    var connectionCount = 0
    /// Time of the loop, halved every ``halfLife``: who has used less goes first.
    var nanoseconds: Int64 = 0
    /// Globs of its watches and subscriptions.
    var globCount = 0

    /// In nanoseconds.
    static let halfLife: Int64 = 100_000_000

    init(uid: UInt32) { self.uid = uid }
}

/// The accounts of the users who are connected.
struct UserAccounts {
    private var byUser: [UInt32: UserAccount] = [:]
    private var halvedAt: Int64 = 0

    /// The account of a user, for one connection more.
    mutating func enter(_ uid: UInt32) -> UserAccount {
        let account = byUser[uid] ?? UserAccount(uid: uid)
        account.connectionCount += 1
        byUser[uid] = account
        return account
    }

    /// A connection has ended.
    mutating func leave(_ account: UserAccount) {
        account.connectionCount -= 1
        if account.connectionCount == 0 { byUser[account.uid] = nil }
    }

    /// Forgets what was used long ago.
    mutating func age(at now: Int64) {
        guard now - halvedAt >= UserAccount.halfLife else { return }
        halvedAt = now
        for account in byUser.values { account.nanoseconds /= 2 }
    }
}
