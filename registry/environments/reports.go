package environments

import (
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// reports are how fresh reports must be, of how many verifiers, on how many cases, and with how many repeated runs.
type reports struct {
	MaxAge    age    `yaml:"max-age"`
	Verifiers amount `yaml:"verifiers"`
	Cases     amount `yaml:"cases"`
	Rare      amount `yaml:"rare"`
}

func (r reports) rule() policy.ReportRule {
	return policy.ReportRule{MaxAge: time.Duration(r.MaxAge), Verifiers: int(r.Verifiers), Cases: int(r.Cases), Rare: int(r.Rare)}
}

// amount is how many of something there must be; 0 where the key is absent.
type amount int

// DecodeYAML reads the number. A 0 that is written would ask for nothing.
func (a *amount) DecodeYAML(node *strictyaml.Node) {
	node.Decode((*int)(a))
	if n, err := strconv.Atoi(node.Text()); err == nil && n == 0 {
		node.Problemf("0 asks for nothing: want at least 1, or no such key")
	}
}

// coverage are the node types that must get an engine which was shown on them.
type coverage struct {
	NodeTypes nodeTypes `yaml:"node-types,required"`
	Witnesses amount    `yaml:"witnesses"`
}

// nodeTypes are names of node types, at least one.
type nodeTypes []string

// DecodeYAML reads the list.
func (ns *nodeTypes) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Sequence || len(n.Items()) == 0 {
		n.Problemf("want a list of node types, such as [g6.xlarge] or [\"*\"]")
		return
	}
	for _, item := range n.Items() {
		if item.Kind() != strictyaml.Scalar || item.Text() == "" {
			item.Problemf("want the name of a node type, or the beginning of names and \"*\"")
			continue
		}
		*ns = append(*ns, item.Text())
	}
}

func (c coverage) rule() policy.CoverageRule {
	return policy.CoverageRule{NodeTypes: c.NodeTypes, Witnesses: int(c.Witnesses)}
}

// served is the model server through which engines must have passed.
type served struct{ policy.ServedRule }

// DecodeYAML reads the name and the versions.
func (s *served) DecodeYAML(n *strictyaml.Node) {
	var written struct {
		By      string   `yaml:"by,required"`
		Version versions `yaml:"version"`
	}
	n.Decode(&written)
	s.ServedRule = policy.ServedRule{By: written.By, Version: artifact.Constraint(written.Version)}
}

// versions are those that count: ">=26.10", "<27", both with a space between them, or one version.
type versions artifact.Constraint

// DecodeYAML reads the bounds.
func (v *versions) DecodeYAML(n *strictyaml.Node) {
	var read artifact.Constraint
	text := strings.NewReplacer(">= ", ">=", "< ", "<").Replace(n.Text())
	for bound := range strings.FieldsSeq(text) {
		if at, ok := strings.CutPrefix(bound, ">="); ok && read.Min == "" {
			read.Min = at
		} else if at, ok := strings.CutPrefix(bound, "<"); ok && read.Below == "" {
			read.Below = at
		} else if read == (artifact.Constraint{}) {
			read.Exact = bound
		} else {
			read = artifact.Constraint{}
			break
		}
	}
	if err := read.Validate(); err != nil || n.Kind() != strictyaml.Scalar {
		n.Problemf("version %.60q: want bounds such as \">=26.10\" or \">=26.10 <27\", or one version", n.Text())
		return
	}
	*v = versions(read)
}

// age is a number of days, such as 90d, or a duration as Go writes it, such as 36h.
type age time.Duration

// DecodeYAML reads either form.
func (a *age) DecodeYAML(n *strictyaml.Node) {
	text := n.Text()
	d, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var count int
		count, err = strconv.Atoi(days)
		if count > 36500 {
			err = strconv.ErrRange
		}
		d = time.Duration(count) * 24 * time.Hour
	}
	if n.Kind() != strictyaml.Scalar || err != nil || d <= 0 {
		n.Problemf("want how old a report may be, such as 90d or 36h")
		return
	}
	*a = age(d)
}
