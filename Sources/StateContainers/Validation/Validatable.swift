public import StateEngine

/// A value that can check its validity.
///
/// ```swift
/// struct Profile: Validatable, Codable {
///     @Required @Email var mail = ""
///     @Min(0) @Max(150) var age: Int? = nil
/// }
/// ```
///
/// The rules are those that `init()` gives to the wrappers: a decoded value has no rules of its
/// own, and is checked by those of a new one.
public protocol Validatable {
    /// Makes a new value, with the rules of its wrappers; it may be invalid.
    init()

    /// The issues of the value; empty if it is valid.
    ///
    /// The default implementation returns ``wrapperIssues()``. An implementation of your own adds
    /// to that.
    func validate() -> [ValidationIssue]
}

extension Validatable {
    /// The violations of the wrappers' rules.
    public func validate() -> [ValidationIssue] { wrapperIssues() }

    /// The violations of the wrappers' rules, in the value and in its `Validatable` parts, also in
    /// collections, Optionals, enumerations and types that are not `Validatable`.
    ///
    /// - Complexity: O(*n*) in the stored properties and elements; it makes one new value for each
    ///   that is `Validatable`.
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

    /// Throws the issues of the value, if there are any.
    ///
    /// - Throws: ``StateError/Code/rejected``, with the issues.
    public func requireValid() throws(StateError) {
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

/// The issues of a value that is Validatable, or contains such values.
func nestedIssues(_ value: Any) -> [ValidationIssue] {
    guard TypeFacts.of(type(of: value)).mayHaveIssues else { return [] }
    if let value = value as? any Validatable { return value.validate() }
    if let value = value as? any ValidatableParts { return value.partIssues() }
    var issues: [ValidationIssue] = []
    var mirror: Mirror? = Mirror(reflecting: value)
    while let here = mirror {
        for (index, part) in here.children.enumerated() {
            // The fields of a tuple are named with a dot.
            let name = part.label.map { String($0.drop { $0 == "." }) } ?? "\(index)"
            issues += nestedIssues(part.value).map { $0.within(name) }
        }
        mirror = here.superclassMirror
    }
    return issues
}

/// A type of the standard library whose values a mirror shows elsewhere, or slowly.
private protocol ValidatableParts {
    func partIssues() -> [ValidationIssue]
}

extension Optional: ValidatableParts {
    fileprivate func partIssues() -> [ValidationIssue] { map { nestedIssues($0) } ?? [] }
}

extension Array: ValidatableParts {
    fileprivate func partIssues() -> [ValidationIssue] {
        enumerated().flatMap { index, element in
            nestedIssues(element).map { $0.within("\(index)") }
        }
    }
}

extension Dictionary: ValidatableParts {
    fileprivate func partIssues() -> [ValidationIssue] {
        map { (name: "\($0.key)", value: $0.value) }.sorted { $0.name < $1.name }
            .flatMap { member in nestedIssues(member.value).map { $0.within(member.name) } }
    }
}
