// Users of StateEngine need the types that its declarations use.
@_exported public import StateModel
@_exported public import StateSystem
