import CLinux

/// What a thread is in the body of: no container may be used there.
protocol BodyOwner: AnyObject {
    /// Ends the process with a message that names `user` and the body.
    func trap(_ user: String) -> Never
}

/// The body that the calling thread runs.
enum RunningBody {
    /// Runs `body` as one of `owner`, which lives until it returns.
    static func with<R>(_ owner: some BodyOwner, _ body: () throws -> R) rethrows -> R {
        clinux_set_body(Unmanaged.passUnretained(owner).toOpaque())
        defer { clinux_set_body(nil) }
        return try body()
    }

    /// Traps if the calling thread is in a body.
    static func check(_ user: String) {
        if let owner = clinux_body() { trap(owner, user) }
    }

    /// Ends the process: `user` is used in a body of `owner`.
    static func trap(_ owner: UnsafeRawPointer, _ user: String) -> Never {
        let owner = Unmanaged<AnyObject>.fromOpaque(owner).takeUnretainedValue()
        guard let owner = owner as? any BodyOwner else {
            fatalError("\(user) is used in the body of another")
        }
        owner.trap(user)
    }
}
