package service_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// model is what a registry should be like: plain values, one operation after the other.
type model struct {
	chain   []string                   // the environments, each of which takes from the one before
	heads   map[string]modelHead       // by environment
	allowed map[string]map[string]bool // by environment: versions that were promoted to it
	claims  map[string]map[string]bool // by environment: names of the facts that are there
	rows    map[string][]row           // of the history, by environment, without evidence
	facts   map[string]fact
}

type modelHead struct{ version, hold string }

// row is what a row of the history says.
type row struct{ kind, version, previous, text string }

// fact is evidence that speaks against a release, or ends evidence that does.
type fact struct {
	kind, version string
	ends          string // lift, pass: the fact that it ends

	subject, bundle registry.Digest
	signed          []byte
}

const (
	factQuarantine = "quarantine"
	factLift       = "lift"
	factFail       = "fail"
	factPass       = "pass"
)

// from is where an environment takes its releases from.
func (m *model) from(environment string) string {
	return m.chain[max(0, slices.Index(m.chain, environment)-1)]
}

func newModel(facts map[string]fact, chain []string) *model {
	return &model{chain, make(map[string]modelHead), make(map[string]map[string]bool), make(map[string]map[string]bool), make(map[string][]row), facts}
}

func (m *model) copy() *model {
	c := newModel(m.facts, m.chain)
	maps.Copy(c.heads, m.heads)
	for e, rows := range m.rows {
		c.rows[e] = slices.Clone(rows)
	}
	for e := range m.allowed {
		c.allowed[e] = maps.Clone(m.allowed[e])
	}
	for e := range m.claims {
		c.claims[e] = maps.Clone(m.claims[e])
	}
	return c
}

func add(to map[string]map[string]bool, environment, name string) {
	if to[environment] == nil {
		to[environment] = make(map[string]bool)
	}
	to[environment][name] = true
}

func (m *model) note(environment, kind, version, previous, text string) {
	m.rows[environment] = append(m.rows[environment], row{kind, version, previous, text})
}

// against reports whether evidence of some kind in some environments stands against a release.
func (m *model) against(version string, kinds []string, environments ...string) bool {
	ended := make(map[string]bool)
	for _, e := range environments {
		for name := range m.claims[e] {
			ended[m.facts[name].ends] = true
		}
	}
	for _, e := range environments {
		for name := range m.claims[e] {
			if f := m.facts[name]; f.version == version && slices.Contains(kinds, f.kind) && !ended[name] {
				return true
			}
		}
	}
	return false
}

func (m *model) promote(to, version string) string {
	source := m.from(to)
	if version == "" {
		version = m.heads[source].version
	}
	refused := m.against(version, []string{factQuarantine, factFail}, source, to)
	head := m.heads[to]
	switch {
	case version == "" || !m.has(source, version):
		return string(registry.CodeNotFound)
	case refused || head.version != version && head.hold != "":
		return string(registry.CodePolicy)
	case head.version == version && m.allowed[to][version]:
		return "already " + version
	}
	for name := range m.claims[source] {
		if m.facts[name].version == version {
			add(m.claims, to, name)
		}
	}
	add(m.allowed, to, version)
	m.heads[to] = modelHead{version, ""}
	m.note(to, "promote", version, head.version, "")
	return "ok " + version
}

func (m *model) rollback(environment, version, reason string) string {
	head, target := m.heads[environment], ""
	for _, r := range slices.Backward(m.rows[environment]) {
		if r.kind == "promote" && target == "" {
			if version == "" && r.version == head.version {
				target = r.previous
			} else if version == r.version && version != head.version {
				target = version
			}
		}
	}
	switch {
	case target == "" && version != "" && version == head.version:
		return string(registry.CodeInvalid)
	case target == "":
		return string(registry.CodeNotFound)
	case m.against(target, []string{factQuarantine}, environment):
		return string(registry.CodePolicy)
	}
	m.heads[environment] = modelHead{target, reason}
	m.note(environment, "rollback", target, head.version, reason)
	return "ok " + target
}

func (m *model) hold(environment, kind, reason string) string {
	head := m.heads[environment]
	switch {
	case head.version == "":
		return string(registry.CodeNotFound)
	case kind == "hold-release" && head.hold == "":
		return string(registry.CodeNotFound)
	}
	m.note(environment, kind, head.version, head.version, reason)
	if kind == "hold-release" {
		reason = ""
	}
	m.heads[environment] = modelHead{head.version, reason}
	return "ok"
}

// attach adds a fact where it is said and wherever else its release is.
func (m *model) attach(environment, name string) string {
	version := m.facts[name].version
	if !m.has(environment, version) {
		return string(registry.CodeNotFound)
	}
	for _, e := range m.chain {
		if m.has(e, version) {
			add(m.claims, e, name)
		}
	}
	return "ok"
}

func (m *model) has(environment, version string) bool {
	return environment == "staging" || m.allowed[environment][version]
}

func (m *model) publish(version string) string {
	if head := m.heads["staging"]; head.version != version {
		m.heads["staging"] = modelHead{version: version}
		m.note("staging", "publish", version, head.version, "")
	}
	return "ok"
}

// differs says in what an observed registry is not what the model says, or "". Evidence may
// have been copied to where no head moved in the end, and be there before the history names
// it, for who looks while something is under way.
func (m *model) differs(seen *model, underWay bool) string {
	said := make(map[string]bool)
	for _, e := range m.chain {
		if m.heads[e] != seen.heads[e] {
			return fmt.Sprintf("the head of %s is %v, want %v", e, seen.heads[e], m.heads[e])
		}
		if !slices.Equal(m.rows[e], seen.rows[e]) {
			return fmt.Sprintf("the history of %s is\n    %v, want\n    %v", e, seen.rows[e], m.rows[e])
		}
		for name := range m.claims[e] {
			said[name] = true
			if !seen.claims[e][name] && !underWay {
				return fmt.Sprintf("%s is not in %s", name, e)
			}
		}
	}
	for _, e := range m.chain {
		for name := range seen.claims[e] {
			if !said[name] && !underWay {
				return fmt.Sprintf("%s is in %s, where it should not be", name, e)
			}
		}
	}
	return ""
}

func (m *model) String() string {
	var b strings.Builder
	for _, e := range m.chain {
		fmt.Fprintf(&b, "  %s: head %v, evidence %v, history %v\n", e, m.heads[e], slices.Sorted(maps.Keys(m.claims[e])), m.rows[e])
	}
	return b.String()
}
