extension Effect {
    /// Runs a closure in a task, and another one if it throws.
    ///
    /// ```swift
    /// .run { send in
    ///     send(.loaded(try await load()))
    /// } catch: { error, send in
    ///     send(.failed("\(error)"))
    /// }
    /// ```
    ///
    /// If the effect was cancelled, what `body` throws is ignored.
    public static func run(
        _ body: @escaping @Sendable (Send<Feedback>) async throws -> Void,
        catch handle: @escaping @Sendable (any Error, Send<Feedback>) async -> Void
    ) -> Effect {
        run { send in
            do { try await body(send) } catch {
                if !Task.isCancelled { await handle(error, send) }
            }
        }
    }

    /// Runs a closure in a task, and sends feedback if it throws: `.run(catch: { .failed("\($0)") })
    /// { … }`.
    ///
    /// If the effect was cancelled, what `body` throws is ignored.
    public static func run(
        catch feedback: @escaping @Sendable (any Error) -> Feedback,
        _ body: @escaping @Sendable (Send<Feedback>) async throws -> Void
    ) -> Effect {
        run(body) { error, send in send(feedback(error)) }
    }
}
