package cireport

import (
	"strings"

	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Spec is the spec of a release, to whose lines findings point.
type Spec struct {
	Path string // relative to the repository, as CI systems show it
	root *strictyaml.Node
}

// ReadSpec reads where things are in a spec. A file that cannot be read gives line 1 for all of them: a report is worth
// having where only the release is at hand.
func ReadSpec(path string) Spec {
	s := Spec{Path: path}
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return s
	}
	var t tree
	if _, err := strictyaml.Decode(path, data, &t); err == nil {
		s.root = t.root
	}
	return s
}

// tree takes a document as it is.
type tree struct{ root *strictyaml.Node }

// DecodeYAML keeps the node.
func (t *tree) DecodeYAML(n *strictyaml.Node) { t.root = n }

// line is where the spec says what a finding is about: the variant of an engine, limits for limits, else the first line.
func (s Spec) line(rule, subject string) int {
	if s.root == nil {
		return 1
	}
	if rule == "looser" {
		return lineOf(s.entry("limits"))
	}
	_, variant, ok := strings.Cut(subject, "/")
	variants := s.entry("variants")
	if !ok || variants == nil {
		return 1
	}
	for _, item := range variants.Items() {
		if item.Text() == variant {
			return lineOf(item)
		}
		for _, e := range item.Entries() {
			if e.Key == "name" && e.Value.Text() == variant {
				return lineOf(item)
			}
		}
	}
	return lineOf(variants)
}

func (s Spec) entry(key string) *strictyaml.Node {
	for _, e := range s.root.Entries() {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

func lineOf(n *strictyaml.Node) int {
	if n == nil {
		return 1
	}
	line, _ := n.Position()
	return max(line, 1)
}
