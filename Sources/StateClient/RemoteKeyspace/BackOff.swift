/// Pauses between attempts to connect: from 10 ms, each twice as long, to 1 s; a random part of each is left out, so that
/// many clients do not come at once.
struct BackOff {
    private static let shortest = Duration.milliseconds(10)
    private static let longest = Duration.seconds(1)

    private(set) var end = Deadline(after: .zero)
    private var pause = shortest
    /// A connection that stands for so long has proved itself.
    private var proof: Deadline?

    var isOver: Bool { end.hasPassed }

    /// An attempt begins: the next is not before a pause.
    mutating func noteAttempt() {
        end = Deadline(after: pause * Double.random(in: 0.5...1))
        pause = min(pause * 2, Self.longest)
        proof = nil
    }

    mutating func noteSuccess() { proof = Deadline(after: pause) }

    /// The connection was lost.
    mutating func begin() {
        if proof?.hasPassed ?? false { pause = Self.shortest }
        noteAttempt()
    }
}
