package cireport

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Built is how an engine was made, as its provenance says.
type Built struct {
	Steps   int           `json:"steps"`
	Cached  int           `json:"cached"`    // taken from a cache
	Elapsed time.Duration `json:"elapsedNs"` // of the others
	// Same is true if the last step of the build was that of the engine of this label there: what differs before gave
	// the same. Else Because is what differs; empty if there is no such engine.
	Same    bool     `json:"same"`
	Because []string `json:"because,omitempty"`
}

// provenance is what a builder said about an engine, as far as builds are compared.
type provenance struct {
	BuildDefinition struct {
		ExternalParameters   map[string]json.RawMessage `json:"externalParameters"`
		ResolvedDependencies []dependency               `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Byproducts []step `json:"byproducts"`
	} `json:"runDetails"`
}

type dependency struct {
	Name   string             `json:"name"`
	Digest evidence.DigestSet `json:"digest"`
}

// step is a step of a build. Its digest is the key of the build cache: of everything that can change its output.
type step struct {
	Name        string             `json:"name"`
	Digest      evidence.DigestSet `json:"digest"`
	Annotations struct {
		Cached  bool            `json:"cached"`
		Elapsed int64           `json:"elapsedNs"`
		Options json.RawMessage `json:"options"`
	} `json:"annotations"`
}

// provenances are those of engines and of the release, by their digests.
func provenances(claims []evidence.Claim) map[registry.Digest]provenance {
	all := map[registry.Digest]provenance{}
	for _, c := range claims {
		if _, known := all[c.Subject]; known || c.Statement.PredicateType != evidence.PredicateProvenance {
			continue
		}
		var p provenance
		if json.Unmarshal(c.Statement.Predicate, &p) == nil {
			all[c.Subject] = p
		}
	}
	return all
}

// builds says of each engine how it was made, and why it is another one than that of its label in the destination.
func (g *gathering) builds(ctx context.Context) {
	ours, theirs := provenances(g.found.Claims), map[registry.Digest]provenance{}
	if g.now != nil {
		claims, _, err := g.i.Claims(ctx, g.promotion.Environment, *g.now)
		if err != nil {
			g.unknown("how the engines of "+g.now.Tag()+" were made", err)
		}
		theirs = provenances(claims)
	}
	for n := range g.Engines {
		e := &g.Engines[n]
		made, ok := ours[e.Digest]
		if !ok {
			continue
		}
		e.Built = made.built()
		before, known := theirs[e.Was]
		switch {
		case e.Was == e.Digest, known && made.endsAs(before):
			e.Built.Same = true
		case known:
			e.Built.Because = made.differsFrom(before)
		}
	}
}

// took is how long the steps took that were no others' work.
func (b Built) took() string {
	if b.Cached == b.Steps {
		return "-"
	}
	return took(b.Elapsed)
}

func (p provenance) built() *Built {
	var b Built
	for _, s := range p.RunDetails.Byproducts {
		b.Steps++
		if s.Annotations.Cached {
			b.Cached++
		} else {
			b.Elapsed += time.Duration(s.Annotations.Elapsed)
		}
	}
	return &b
}

// endsAs reports whether the last steps of two builds are one: the key of a step covers all that it reads.
func (p provenance) endsAs(before provenance) bool {
	ours, theirs := p.RunDetails.Byproducts, before.RunDetails.Byproducts
	if len(ours) == 0 || len(theirs) == 0 {
		return false
	}
	key := ours[len(ours)-1].key()
	return key != "" && key == theirs[len(theirs)-1].key()
}

// judges are inputs that a release is judged by, or that only say where it came from: engines are not made of them.
func judges(name string) bool {
	kind, _, _ := strings.Cut(name, " ")
	return slices.Contains([]string{"sources", "limits", "interface", "cases", "repository", "part", "program"}, kind)
}

// differsFrom lists what differs between two builds: inputs, then parameters, then options of steps. Where these are
// the same, the keys of steps say which had something else, such as another machine.
func (p provenance) differsFrom(before provenance) []string {
	why := differences(p.inputs(), before.inputs())
	for _, name := range []string{"target", "variant", "providers"} {
		if !sameJSON(p.BuildDefinition.ExternalParameters[name], before.BuildDefinition.ExternalParameters[name]) {
			why = append(why, name)
		}
	}
	options := func(s step) string { return string(compact(s.Annotations.Options)) }
	for _, name := range differences(p.steps(options), before.steps(options)) {
		why = append(why, "options of "+name)
	}
	if len(why) > 0 {
		return why
	}
	for _, name := range differences(p.steps(step.key), before.steps(step.key)) {
		why = append(why, "driver or machine of "+name)
	}
	return why
}

func (s step) key() string { return string(s.Digest.SHA256()) }

// inputs are what an engine was made of: digests by name.
func (p provenance) inputs() map[string][]string {
	all := map[string][]string{}
	for _, d := range p.BuildDefinition.ResolvedDependencies {
		if !judges(d.Name) {
			all[d.Name] = append(all[d.Name], string(d.Digest.SHA256()))
		}
	}
	return all
}

// steps are what a function says of each step, by name.
func (p provenance) steps(say func(step) string) map[string][]string {
	all := map[string][]string{}
	for _, s := range p.RunDetails.Byproducts {
		all[s.Name] = append(all[s.Name], say(s))
	}
	return all
}

// differences are the names whose values differ, sorted.
func differences(a, b map[string][]string) []string {
	var names []string
	for name := range a {
		if !slices.Equal(slices.Sorted(slices.Values(a[name])), slices.Sorted(slices.Values(b[name]))) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(compact(a), compact(b)) }

// compact is JSON without spaces; the text itself if it is none.
func compact(text json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// buildsTable says what was built and why, and what is the same as before.
func buildsTable(r Report) string {
	rows := [][]string{{"Engine", "Built", "From a cache", "Took", "Because it differs in"}}
	for _, e := range r.Engines {
		if e.Built == nil {
			continue
		}
		why := "-"
		switch {
		case e.Built.Same:
			why = "nothing: its last step is by " + md(r.Current)
		case len(e.Built.Because) > 0:
			const most = 5
			why = md(strings.Join(e.Built.Because[:min(most, len(e.Built.Because))], ", "))
			if more := len(e.Built.Because) - most; more > 0 {
				why += ", " + registry.Count(more, "more", "more")
			}
		case r.Current != "":
			why = md(r.Current) + " has no engine of this label that can be compared"
		}
		rows = append(rows, []string{md(e.Label), registry.Count(e.Built.Steps, "step"), registry.Count(e.Built.Cached, "step"), e.Built.took(), why})
	}
	if len(rows) == 1 {
		return ""
	}
	return table(rows)
}
