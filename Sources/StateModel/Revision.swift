/// A commit of a store: its number, and the store's epoch.
public struct Revision: Hashable, Sendable {
    /// The identity of the store.
    public let epoch: Epoch
    /// The number of the commit, below 2^53; 0 is before the first.
    public let number: Int64

    /// Makes a revision.
    public init(epoch: Epoch, number: Int64) {
        self.epoch = epoch
        self.number = number
    }

    /// Whether this commit came after `other`; false if the epochs differ, because then they cannot
    /// be compared.
    public func isNewer(than other: Revision) -> Bool {
        epoch == other.epoch && number > other.number
    }
}

extension Revision: CustomStringConvertible {
    /// `number@epoch`.
    public var description: String { "\(number)@\(epoch)" }
}
