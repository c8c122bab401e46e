package environments

import (
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// reports are how fresh reports must be, of how many verifiers, and on how many cases.
type reports struct {
	MaxAge    age  `yaml:"max-age"`
	Verifiers *int `yaml:"verifiers"`
	Cases     *int `yaml:"cases"`
}

func (r reports) rule() registry.ReportRule {
	rule := registry.ReportRule{MaxAge: time.Duration(r.MaxAge)}
	if r.Verifiers != nil {
		rule.Verifiers = *r.Verifiers
	}
	if r.Cases != nil {
		rule.Cases = *r.Cases
	}
	return rule
}

// coverage are the node types that must get an engine which was shown on them.
type coverage struct {
	NodeTypes nodeTypes `yaml:"node-types,required"`
	Witnesses *int      `yaml:"witnesses"`
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

func (c coverage) rule() registry.CoverageRule {
	rule := registry.CoverageRule{NodeTypes: c.NodeTypes}
	if c.Witnesses != nil {
		rule.Witnesses = *c.Witnesses
	}
	return rule
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
