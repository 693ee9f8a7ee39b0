import StateStore

/// The detail scene of QBChat: a view that knows only a view state and inputs.
enum DetailScene {
    struct ViewState: Hashable, Sendable {
        var title: String
        var lines: [String]
        var isSending: Bool
    }

    enum Input: Hashable, Sendable { case post(String) }

    /// The view: it does not know its model's type.
    struct View: Sendable {
        let model: AnyViewModel<ViewState, Input>

        var text: String {
            "\(model.title): \(model.lines.joined(separator: ", "))\(model.isSending ? " …" : "")"
        }

        func enter(_ line: String) { model.trigger(.post(line)) }
    }

    /// Knows names.
    struct Directory: Sendable { let name: @Sendable (Int) -> String }

    /// Sends lines.
    struct Postman: Sendable { let post: @Sendable (String) async -> Bool }

    /// Hidden from the view: the chat's number, and how many lines were refused.
    struct Hidden: Hashable, Sendable {
        let chat: Int
        var lines: [String] = []
        var sending = 0
        var refused = 0
    }

    enum Feedback: Hashable, Sendable {
        case posted(String)
        case refused
    }

    struct Model: Reducer {
        let postman: Postman

        func reduce(
            _ message: Message<Input, Feedback>,
            into state: inout Hidden
        ) -> Effect<Feedback, Never> {
            switch message {
            case .input(.post(let line)):
                state.sending += 1
                return .run { [postman] send in
                    send(await postman.post(line) ? .posted(line) : .refused)
                }
            case .feedback(.posted(let line)):
                state.sending -= 1
                state.lines.append(line)
            case .feedback(.refused):
                state.sending -= 1
                state.refused += 1
            }
            return .none
        }
    }

    /// A model for previews and tests: no service, no reducer.
    final class Mock: ViewModel {
        private let store = OpenMock(ViewState(title: "Mock", lines: [], isSending: false))

        var state: ViewState { store.state }
        var stateStream: StoreStates<ViewState> { store.stateStream }

        func trigger(_ input: Input) {
            if case .post(let line) = input { store.modify { $0.lines.append(line) } }
        }

        private final class OpenMock: OpenStore<ViewState, Never>, @unchecked Sendable {}
    }
}

extension Example {
    static let viewState = Example(
        name: "view-state",
        summary:
            "a view with a hidden model behind it, swapped for a mock without touching the view"
    ) { checks in
        let directory = DetailScene.Directory { ["Ann", "Bob"][$0] }
        let postman = DetailScene.Postman { line in
            await Task.yield()
            return line != "spam"
        }
        let store = Store(
            DetailScene.Hidden(chat: 1),
            reducer: DetailScene.Model(postman: postman)
        )
        let real = AnyViewModel<DetailScene.ViewState, DetailScene.Input>(store) { hidden in
            DetailScene.ViewState(
                title: directory.name(hidden.chat),
                lines: hidden.lines,
                isSending: hidden.sending > 0
            )
        } input: {
            $0
        }
        let view = DetailScene.View(model: real)
        var states = real.stateStream.makeAsyncIterator()
        view.enter("spam")
        view.enter("hello")
        var shown = await states.next()
        while shown?.lines != ["hello"] || shown?.isSending != false { shown = await states.next() }
        print("  \(view.text)")
        checks.expect(view.text == "Bob: hello", "the view shows what was posted")
        checks.expect(store.refused == 1, "refused lines are hidden from the view")
        let preview = DetailScene.View(model: AnyViewModel(DetailScene.Mock()))
        preview.enter("hello")
        checks.expect(preview.text == "Mock: hello", "the same view shows a mock")
    }
}
