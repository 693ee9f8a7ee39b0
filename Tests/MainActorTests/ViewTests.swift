import Observation
import StandInUI
import StateContainers
import Testing

// Views as an app of SwiftUI writes them. Both modules have a State: here it is that of the views.
private typealias State = StandInUI.State

private enum Model {
    static let name = MonitoredState("Ada", key: "name")
    static let clicks = StateContainers.State(0, key: "clicks")
}

private struct NameView: View {
    @State private var isSaved = false

    var body: some View {
        Text("\(Model.name.value)\(isSaved ? "" : ", unsaved")")
        TextField("Name", text: Binding(Model.name.binding(\.self)))
        Button("Save") {
            Model.clicks ~> { $0 += 1 }
            isSaved = true
        }
    }
}

extension Binding where Value: Sendable {
    /// A binding to a container.
    fileprivate init(_ binding: StateBinding<Value>) {
        self.init {
            binding.wrappedValue
        } set: {
            binding.wrappedValue = $0
        }
    }
}

struct ViewTests {
    private func parts(of view: some View) -> [any View] { (view.body as? Group)?.views ?? [] }

    @Test func `a text field sets a container, and the view is drawn again`() throws {
        try StateScope.run {
            let view = NameView()
            let isOutdated = MonitoredState(false, key: "isOutdated")
            let drawn = withObservationTracking {
                parts(of: view)
            } onChange: {
                isOutdated ~> true
            }
            #expect((drawn[0] as? Text)?.text == "Ada, unsaved" && !isOutdated.value)
            try #require(drawn[1] as? TextField).text.wrappedValue = "Grace"
            #expect(Model.name.value == "Grace" && isOutdated.value)
            try #require(drawn[2] as? Button).action()
            #expect((parts(of: view)[0] as? Text)?.text == "Grace" && Model.clicks.value == 1)
        }
    }
}
