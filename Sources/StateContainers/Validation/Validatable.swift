public import StateEngine

/// A value that knows whether it is good.
///
/// ```swift
/// struct Profile: Validatable, Codable {
///     @Required @Email var mail = ""
///     @Min(0) @Max(150) var age: Int? = nil
/// }
/// ```
///
/// The rules are those that `init()` gives to the wrappers: a decoded value has its bare values only, and is judged by
/// the rules of a new one.
public protocol Validatable {
    /// A new value, with the rules of its wrappers; it need not be a good one.
    init()

    /// What is wrong with the value; nothing where it is good.
    ///
    /// Without an implementation of one's own: what breaks the wrappers' rules, in the value and in what is
    /// `Validatable` in it, also in arrays, dictionaries and Optionals. One of one's own adds to that
    /// ``wrapperIssues()``.
    func validate() -> [ValidationIssue]
}

extension Validatable {
    /// What breaks the rules of the wrappers.
    public func validate() -> [ValidationIssue] { wrapperIssues() }

    /// What breaks the rules of the wrappers, in the value and in what is `Validatable` in it.
    ///
    /// - Complexity: O(*n*) in the stored properties and elements; it makes one new value for each that
    ///   is `Validatable`.
    public func wrapperIssues() -> [ValidationIssue] {
        var issues: [ValidationIssue] = []
        var (mine, model): (Mirror?, Mirror?) = (
            Mirror(reflecting: self), Mirror(reflecting: Self())
        )
        while let here = mine {
            issues += fieldIssues(here, model)
            (mine, model) = (here.superclassMirror, model?.superclassMirror)
        }
        return issues
    }

    /// Throws what is wrong with the value.
    ///
    /// - Throws: ``StateError/Code/rejected``, with the issues.
    public func checkValidity() throws(StateError) {
        let issues = validate()
        if !issues.isEmpty { throw StateError(rejecting: issues) }
    }
}

/// The issues of the stored properties of one class or struct, whose rules may be those of `model`.
private func fieldIssues(_ mine: Mirror, _ model: Mirror?) -> [ValidationIssue] {
    var issues: [ValidationIssue] = []
    let models = model?.children.makeIterator()
    for field in mine.children {
        let model = models?.next()
        guard let label = field.label else { continue }
        if let wrapper = field.value as? any ValidatedWrapper {
            let found = wrapper.issues(model: model?.label == label ? model?.value : nil)
            // The storage of a wrapped property is named with a `_`.
            issues += found.map { $0.within(String(label.dropFirst())) }
        } else {
            issues += nestedIssues(field.value).map { $0.within(label) }
        }
    }
    return issues
}

/// The issues of a value that is Validatable, or has such values in it.
func nestedIssues(_ value: Any) -> [ValidationIssue] {
    if let value = value as? any Validatable { return value.validate() }
    return (value as? any ValidatableParts)?.partIssues() ?? []
}

/// A collection or Optional, which may have Validatable values in it.
private protocol ValidatableParts {
    static var mayHaveIssues: Bool { get }
    func partIssues() -> [ValidationIssue]
}

/// Whether values of this type may be bad: asked of the type, so that an array of numbers costs nothing.
func mayHaveIssues(_ type: Any.Type) -> Bool {
    type is any Validatable.Type || (type as? any ValidatableParts.Type)?.mayHaveIssues == true
}

extension Optional: ValidatableParts {
    fileprivate static var mayHaveIssues: Bool { StateContainers.mayHaveIssues(Wrapped.self) }

    fileprivate func partIssues() -> [ValidationIssue] {
        Self.mayHaveIssues ? map { nestedIssues($0) } ?? [] : []
    }
}

extension Array: ValidatableParts {
    fileprivate static var mayHaveIssues: Bool { StateContainers.mayHaveIssues(Element.self) }

    fileprivate func partIssues() -> [ValidationIssue] {
        guard Self.mayHaveIssues else { return [] }
        return enumerated().flatMap { index, element in
            nestedIssues(element).map { $0.within("\(index)") }
        }
    }
}

extension Dictionary: ValidatableParts {
    fileprivate static var mayHaveIssues: Bool { StateContainers.mayHaveIssues(Value.self) }

    fileprivate func partIssues() -> [ValidationIssue] {
        guard Self.mayHaveIssues else { return [] }
        return map { (name: "\($0.key)", value: $0.value) }.sorted { $0.name < $1.name }.flatMap {
            member in nestedIssues(member.value).map { $0.within(member.name) }
        }
    }
}
