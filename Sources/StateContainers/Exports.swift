// Who imports StateContainers needs the words that its declarations are made of.
@_exported public import StateEngine
@_exported public import StateJSON
