import StateStore
import StateTesting
import Testing

/// Effects as objects: requests that a handler performs, and operations.
struct EffectHandlerTests {
    private enum Request: Hashable, Sendable { case page(Int) }

    private enum Feedback: Hashable, Sendable {
        case loaded(String)
        case late
    }

    private protocol Site: Sendable {
        func text(of page: Int) async -> String
    }

    private struct Web: EffectHandler {
        let site: any Site

        func perform(_ request: Request, _ send: Send<Feedback>) async {
            switch request {
            case .page(let number): send(.loaded(await site.text(of: number)))
            }
        }
    }

    private struct Timeout: EffectOperation {
        let time: Duration

        func run(_ send: Send<Feedback>) async {
            try? await send.clock.sleep(for: time)
            send(.late)
        }
    }

    private struct Reader: Reducer {
        let handler: any EffectHandler<Request, Feedback>

        func reduce(
            _ message: Message<Int, Feedback>,
            into text: inout String
        ) -> Effect<Feedback, String> {
            switch message {
            case .input(let page):
                return .merge(
                    .perform(.page(page), with: handler),
                    .run(Timeout(time: .seconds(5))).cancellable(id: "timeout")
                )
            case .feedback(.loaded(let loaded)):
                text = loaded
                return .cancel(id: "timeout")
            case .feedback(.late):
                return .output("late")
            }
        }
    }

    private struct Pages: Site {
        func text(of page: Int) async -> String { "page \(page)" }
    }

    /// Answers nothing.
    private struct Silent: EffectHandler {
        func perform(_ request: Request, _ send: Send<Feedback>) async {}
    }

    @Test func `a handler has its dependency, and performs the requests of a reducer`() async throws
    {
        let store = TestStore("", reducer: Reader(handler: Web(site: Pages())), clock: TestClock())
        try await store.send(7)
        try await store.receive(.loaded("page 7")) { $0 = "page 7" }
        try await store.finish()
    }

    @Test func `a test replaces the handler`() async throws {
        let clock = TestClock()
        let store = TestStore("", reducer: Reader(handler: Silent()), clock: clock)
        try await store.send(7)
        await clock.advance(by: .seconds(5))
        try await store.receive(.late)
        try await store.receive(output: "late")
        try await store.finish()
    }
}
