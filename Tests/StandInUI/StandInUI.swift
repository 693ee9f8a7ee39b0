// The names of SwiftUI that views with containers use, so that such views compile on Linux.

/// A part of a user interface.
@MainActor @preconcurrency
public protocol View {
    /// The type of what it shows.
    associatedtype Body: View
    /// What it shows.
    @ViewBuilder var body: Body { get }
}

/// Makes one view of several.
@resultBuilder
public enum ViewBuilder {
    /// The views beside each other.
    @MainActor public static func buildBlock(_ views: any View...) -> Group { Group(views: views) }
}

/// Views beside each other.
public struct Group: View {
    /// The views.
    public let views: [any View]
    /// Nothing of its own.
    public typealias Body = Never
}

extension View where Body == Never {
    /// Nothing of its own.
    public var body: Never { fatalError("\(Self.self) has no body") }
}

extension Never: View {
    /// Nothing of its own.
    public typealias Body = Never
}

/// A line of text.
public struct Text: View {
    /// The text.
    public let text: String
    /// Shows a text.
    public init(_ text: String) { self.text = text }
    /// Nothing of its own.
    public typealias Body = Never
}

/// A text that a person edits.
public struct TextField: View {
    /// What it is for.
    public let title: String
    /// The text.
    public let text: Binding<String>
    /// Shows a text to edit.
    public init(_ title: String, text: Binding<String>) { (self.title, self.text) = (title, text) }
    /// Nothing of its own.
    public typealias Body = Never
}

/// A thing to press.
public struct Button: View {
    /// What it does.
    public let title: String
    /// Does it.
    public let action: @MainActor () -> Void
    /// Shows a thing to press.
    public init(_ title: String, action: @escaping @MainActor () -> Void) {
        (self.title, self.action) = (title, action)
    }
    /// Nothing of its own.
    public typealias Body = Never
}

/// A value that a view shows and sets.
@MainActor @propertyWrapper
public struct Binding<Value> {
    private let get: @MainActor () -> Value
    private let set: @MainActor (Value) -> Void

    /// Makes a binding of two closures.
    public init(get: @escaping @MainActor () -> Value, set: @escaping @MainActor (Value) -> Void) {
        (self.get, self.set) = (get, set)
    }

    /// The value.
    public var wrappedValue: Value {
        get { get() }
        nonmutating set { set(newValue) }
    }
}

/// A value of a view's own.
@MainActor @propertyWrapper
public struct State<Value> {
    private final class Box {
        var value: Value
        init(_ value: Value) { self.value = value }
    }

    private let box: Box

    /// Begins with a value.
    public init(wrappedValue: Value) { box = Box(wrappedValue) }

    /// The value.
    public var wrappedValue: Value {
        get { box.value }
        nonmutating set { box.value = newValue }
    }

    /// A binding to the value.
    public var projectedValue: Binding<Value> {
        Binding { [box] in
            box.value
        } set: { [box] in
            box.value = $0
        }
    }
}
