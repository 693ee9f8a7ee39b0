// Who imports StateEngine needs the words that its declarations are made of.
@_exported public import StateModel
@_exported public import StateSystem
