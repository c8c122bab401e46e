// Package strictyaml decodes the YAML files that people write for mlpromote, and
// reports line and column of every mistake in them.
//
// It reads a plain part of YAML 1.2: one document of mappings, sequences and
// scalars. Anchors, aliases, tags, merge keys and directives are refused, because
// the meaning of a line should not depend on other lines. So are keys that the Go type
// does not know, keys that are there twice, and values of another type: a limit
// that was misspelt must not be a limit that is not there.
//
// A document goes through three steps: tokens, which bound nesting before anything
// recurses; a tree of [Node] values; and the Go value. [Document] keeps the places,
// so that rules about meaning can point at them too.
package strictyaml
