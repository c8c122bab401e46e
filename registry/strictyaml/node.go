package strictyaml

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Kind is the shape of a node.
type Kind int

// The kinds. The zero Kind is Null: nothing was written.
const (
	Null Kind = iota
	Scalar
	Sequence
	Mapping
)

// String names the kind for people.
func (k Kind) String() string {
	return [...]string{"nothing", "a single value", "a list", "a mapping"}[k]
}

// scalarType is what YAML's core schema takes a scalar for.
type scalarType int

const (
	typeText scalarType = iota
	typeBool
	typeInt
	typeFloat
)

// Node is one value of a document and its place.
type Node struct {
	document     *Document
	kind         Kind
	line, column int
	text         string
	scalar       scalarType
	quoted       bool
	items        []*Node
	entries      []Entry
	closing      *token.Token // of a mapping or list in brackets: the last bracket
}

// Entry is one key of a mapping with its value, in the order of the document.
type Entry struct {
	Key   string
	Name  *Node // where the key stands; its text is Key
	Value *Node
}

// Kind is the shape of the node.
func (n *Node) Kind() Kind { return n.kind }

// Position is line and column of the node, from 1.
func (n *Node) Position() (line, column int) { return n.line, n.column }

// Text is a scalar as it was written, without its quotes; "" for other kinds.
func (n *Node) Text() string { return n.text }

// Items are the values of a sequence; nil for other kinds.
func (n *Node) Items() []*Node { return n.items }

// Entries are the keys and values of a mapping; nil for other kinds.
func (n *Node) Entries() []Entry { return n.entries }

// Closing is line and column of the bracket that ends the node; ok is false for a node that is
// not in brackets.
func (n *Node) Closing() (line, column int, ok bool) {
	if n.closing == nil || n.closing.Position == nil {
		return 0, 0, false
	}
	return n.closing.Position.Line, n.closing.Position.Column, true
}

// LastLine is the line in which the last value of the node begins or its bracket stands.
func (n *Node) LastLine() int {
	last := n.line
	if line, _, ok := n.Closing(); ok {
		last = max(last, line)
	}
	for _, item := range n.items {
		last = max(last, item.LastLine())
	}
	for _, e := range n.entries {
		last = max(last, e.Name.line, e.Value.LastLine())
	}
	return last
}

// Problemf notes that something is wrong here.
func (n *Node) Problemf(format string, args ...any) {
	n.document.add(Problem{n.line, n.column, fmt.Sprintf(format, args...)})
}

func (n *Node) child(step any) *Node {
	switch s := step.(type) {
	case string:
		for _, e := range n.entries {
			if e.Key == s {
				return e.Value
			}
		}
	case int:
		if s >= 0 && s < len(n.items) {
			return n.items[s]
		}
	}
	return nil
}

// node makes the tree of an AST. The gate has bounded its depth.
func (d *Document) node(from ast.Node) *Node {
	switch v := from.(type) {
	case nil:
		return &Node{document: d, line: 1, column: 1}
	case *ast.MappingNode:
		return d.mapping(v, v.Values)
	case *ast.MappingValueNode:
		return d.mapping(v, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		n := d.at(v.Start)
		n.kind = Sequence
		if v.IsFlowStyle {
			n.closing = v.End
		}
		for _, item := range v.Values {
			n.items = append(n.items, d.node(item))
		}
		return n
	}
	return d.scalar(from)
}

func (d *Document) mapping(from ast.Node, values []*ast.MappingValueNode) *Node {
	start := from.GetToken()
	if m, ok := from.(*ast.MappingNode); (!ok || !m.IsFlowStyle) && len(values) > 0 {
		start = values[0].Key.GetToken() // a block mapping's own token is the first ':'
	}
	n := d.at(start)
	n.kind = Mapping
	if m, ok := from.(*ast.MappingNode); ok && m.IsFlowStyle {
		n.closing = m.End
	}
	seen := make(map[string]*Node, len(values))
	for _, value := range values {
		key := d.key(value.Key)
		if first := seen[key.text]; first != nil {
			key.Problemf("key %q is here twice: the first is in line %d", key.text, first.line)
		}
		seen[key.text] = key
		inner := d.node(value.Value)
		if inner.kind == Null {
			inner.line, inner.column = key.line, key.column
		}
		n.entries = append(n.entries, Entry{key.text, key, inner})
	}
	return n
}

func (d *Document) key(from ast.MapKeyNode) *Node {
	var inner ast.Node = from
	if explicit, ok := from.(*ast.MappingKeyNode); ok {
		inner = explicit.Value
	}
	key := d.node(inner)
	if key.kind != Scalar {
		key.Problemf("the key is %s: want a name", key.kind)
	}
	return key
}

func (d *Document) scalar(from ast.Node) *Node {
	n := d.at(from.GetToken())
	n.kind, n.text = Scalar, from.GetToken().Value
	switch v := from.(type) {
	case *ast.NullNode:
		n.kind, n.text = Null, ""
	case *ast.StringNode:
		n.text = v.Value
		n.quoted = v.Token.Type == token.SingleQuoteType || v.Token.Type == token.DoubleQuoteType
	case *ast.LiteralNode:
		n.text, n.quoted = v.Value.Value, true
	case *ast.BoolNode:
		n.scalar = typeBool
	case *ast.IntegerNode:
		n.scalar = typeInt
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.scalar = typeFloat
	default:
		n.Problemf("this part of YAML is not read: want mappings, lists and single values")
	}
	return n
}

// at makes a node where a token stands.
func (d *Document) at(t *token.Token) *Node {
	n := &Node{document: d, line: 1, column: 1}
	if t != nil && t.Position != nil {
		n.line, n.column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return n
}
