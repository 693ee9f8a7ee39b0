/// Pauses between attempts to connect: from 10 ms, each twice as long, up to 1 s.
///
/// Each is shortened at random, so that many clients do not connect at once.
struct BackOff {
    private static let shortest = Duration.milliseconds(10)
    private static let longest = Duration.seconds(1)

    private(set) var end = Deadline(after: .zero)
    private var pause = shortest
    /// When the connection has lasted long enough to reset the pause.
    private var proof: Deadline?

    var isOver: Bool { end.hasPassed }

    /// Starts the pause before the next attempt.
    mutating func noteAttempt() {
        end = Deadline(after: pause * Double.random(in: 0.5...1))
        pause = min(pause * 2, Self.longest)
        proof = nil
    }

    mutating func noteSuccess() { proof = Deadline(after: pause) }

    /// The connection was lost: starts the pause.
    mutating func begin() {
        if proof?.hasPassed ?? false { pause = Self.shortest }
        noteAttempt()
    }
}
