/// Who waits for memory, and who is refused some.
extension ClientMemory {
    /// Whether a connection must wait before its next command: its user has its share already.
    func mustWait(_ connection: Connection) -> Bool { !hasRoom(of: connection) }

    /// Whether a connection may take so many more bytes; each user always has its share.
    func hasRoom(for byteCount: Int = 0, of connection: Connection) -> Bool {
        if self.byteCount + byteCount <= tightByteCount { return true }
        guard let account = connection.share.account else { return true }
        return account.byteCount + byteCount <= tightByteCount / max(1, accounts.count)
    }

    /// The user with the largest `byteCount`; never one below its share.
    ///
    /// - Complexity: O(*n*) in the users.
    func greediest(by byteCount: (Account) -> Int) -> Account? {
        accounts.values.max { byteCount($0) < byteCount($1) }
    }
}
