// Package strictyaml decodes the YAML files that people write for mlpromote, and
// says line and column of whatever is wrong in them.
//
// It reads a plain part of YAML 1.2: one document of mappings, sequences and
// scalars. Anchors, aliases, tags, merge keys and directives are refused, because
// what a file says should be where the file says it. So are keys that the Go type
// does not know, keys that are there twice, and values of another type: a limit
// that was misspelt must not be a limit that is not there.
//
// A document goes through three steps: tokens, which bound nesting before anything
// recurses; a tree of [Node] values; and the Go value. [Document] keeps the places,
// so that rules about meaning can point at them too.
package strictyaml
