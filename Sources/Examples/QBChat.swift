import StateStore

/// Redux: one state of the app, one action nested by scene, one reducer.
enum QBChat {
    struct Line: Codable, Hashable, Sendable {
        let chat: Int
        let text: String
    }

    struct ChatsScene: Codable, Hashable, Sendable {
        var names: [Int: String] = [:]
        var selected: Int?
    }

    struct DetailScene: Codable, Hashable, Sendable {
        var lines: [Line] = []
        var draft = ""
    }

    struct AppState: Codable, Hashable, Sendable {
        var chats = ChatsScene()
        var detail = DetailScene()
    }

    enum AppAction: Hashable, Sendable {
        case chats(Chats)
        case detail(Detail)
        /// The server's chats and lines.
        case sync([Int: String], [Line])

        enum Chats: Hashable, Sendable { case select(Int) }

        enum Detail: Hashable, Sendable {
            case write(String)
            case post
            /// A complete line.
            case receive(Line)
        }
    }

    static let reducer = Reduce<AppState, AppAction, Never, String> { state, message in
        guard case .input(let action) = message else { return .none }
        switch action {
        case .chats(.select(let chat)): state.chats.selected = chat
        case .detail(.write(let text)): state.detail.draft = text
        case .detail(.receive(let line)): state.detail.lines.append(line)
        case .detail(.post):
            guard let chat = state.chats.selected else { return .output("no chat is selected") }
            state.detail.lines.append(Line(chat: chat, text: state.detail.draft))
            state.detail.draft = ""
        case .sync(let names, let lines):
            state.chats.names = names
            state.detail.lines = lines
        }
        return .none
    }
}

extension Example {
    static let qbChat = Example(
        name: "redux-qbchat",
        summary:
            "Redux: one state, one action, one reducer; two scenes, each woken for its part only"
    ) { checks in
        let store = Store(QBChat.AppState(), reducer: QBChat.reducer)
        let chats = store.scope(state: \.chats) { .chats($0) }
        let detail = store.scope(state: \.detail) { (input: QBChat.AppAction.Detail) in
            .detail(input)
        }
        var outputs = store.outputStream.makeAsyncIterator()
        var scenes = chats.stateStream.makeAsyncIterator()
        checks.expect(await scenes.next() == QBChat.ChatsScene(), "the list of chats is empty")
        detail.send(.post)
        checks.expect(await outputs.next() == "no chat is selected", "posting needs a chat")
        for text in ["h", "he", "hello"] { detail.send(.write(text)) }
        store.send(.sync([1: "Ann", 2: "Bob"], [QBChat.Line(chat: 1, text: "hi")]))
        let synced = await scenes.next()
        checks.expect(synced?.names.count == 2, "sync woke the list; typing did not")
        let select: QBChat.AppAction.Chats = .select(2)
        chats.send(select)
        detail.send(.post)
        checks.expect(
            detail.lines.last == QBChat.Line(chat: 2, text: "hello"),
            "hello is posted to the selected chat"
        )
        checks.expect(detail.draft.isEmpty, "the draft is empty")
    }
}
