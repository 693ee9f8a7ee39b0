// Who imports StateTesting needs the words that its declarations are made of.
@_exported public import StateStore
