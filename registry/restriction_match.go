package registry

import (
	"fmt"
	"slices"
)

// BuildType is the buildType of provenance by this program. Provenance of other builders does not
// say what an engine was made from in a form that rules read.
const BuildType = "https://mlpromote.dev/build/v1"

// RestrictionMatch is a restriction that concerns an engine.
type RestrictionMatch struct {
	Restriction Restriction `json:"restriction"`
	// Why says what the engine was made from or with, or that nothing signed says it.
	Why string `json:"why"`
}

// Match lists the restrictions that concern an engine of the release. claims are about the release.
// It compares the manifest of the engine, and the provenance of trusted builders. What no
// provenance says counts as restricted: a restriction must not miss an engine.
//
// It does not say whether restrictions are known: see [Policy.Check] and [CheckEngineStanding].
func (rs Restrictions) Match(r Release, e Engine, claims []Claim) []RestrictionMatch {
	if len(rs.entries) == 0 {
		return nil
	}
	r.Engines = []Engine{e}
	counted, _ := count(r, claims)
	return rs.match(r, e, counted)
}

func (rs Restrictions) match(r Release, e Engine, cs counted) []RestrictionMatch {
	var matches []RestrictionMatch
	if len(rs.entries) == 0 {
		return nil
	}
	in := ingredientsOf(r, e, cs)
	for _, restriction := range rs.entries {
		if why := in.matches(restriction); why != "" {
			matches = append(matches, RestrictionMatch{restriction, why})
		}
	}
	return matches
}

// CheckEngine decides about one engine of the release by the restrictions alone.
func (rs Restrictions) CheckEngine(r Release, e Engine, claims []Claim) Decision {
	r.Engines = []Engine{e}
	counted, _ := count(r, claims)
	j := judging{policy: Policy{Promotion: PromotionContext{Restrictions: rs}}, release: r, counted: counted}
	return Decision{Requirements: judge{perEngine, judgeRestrictions}.named(requireUnrestricted, j)}
}

// judgeRestrictions decides for each engine whether nothing restricts it. Without
// restrictions there is nothing to show, so it returns none.
func judgeRestrictions(j judging) []Requirement {
	in := j.policy.Promotion.Restrictions
	if !in.known {
		return []Requirement{{Subject: subjectRelease, Detail: "it is unknown what is restricted here: read the restriction list of the environment"}}
	}
	if len(in.entries) == 0 {
		return nil
	}
	var all []Requirement
	for _, e := range j.release.Engines {
		req := Requirement{Subject: e.Label(), Met: true, Detail: "nothing that it was made from is restricted"}
		for _, m := range in.match(j.release, e, j.counted) {
			req.refuse("%s, and %s is restricted (%.200q): choose another version", m.Why, m.Restriction, m.Restriction.Reason)
		}
		all = append(all, req)
	}
	return all
}

// ingredients is what an engine was made from and with.
type ingredients struct {
	stated     bool     // a trusted builder said it
	sources    []Digest // files of the model, the reference, the sources, and all other dependencies
	toolchains []Toolchain
	operators  []Digest
	// calibration is the data that quantizers read. Builds before this field say only that they
	// quantized, so that it is unknown.
	calibration      []Digest
	calibrationKnown bool
}

// ingredientsOf collects what the manifest and all counted provenance of an engine say. It is
// known if one of them says it; what a second one adds is added.
func ingredientsOf(r Release, e Engine, cs counted) ingredients {
	in := ingredients{
		sources:          []Digest{r.Sources, e.Sources, e.Reference},
		toolchains:       []Toolchain{e.Toolchain},
		calibrationKnown: true,
	}
	for _, library := range e.Operators {
		in.operators = append(in.operators, library.Digest)
	}
	for _, c := range cs.of(PredicateProvenance, e.Digest) {
		c.Statement.addIngredients(&in)
	}
	return in
}

// builtFrom is the part of the predicate of provenance that says what an engine was made from.
type builtFrom struct {
	BuildDefinition struct {
		BuildType          string `json:"buildType"`
		InternalParameters struct {
			Toolchain *namedTool `json:"toolchain"`
			Importer  *struct {
				Tool namedTool `json:"tool"`
			} `json:"importer"`
			Made struct {
				Compressor *namedTool `json:"compressor"`
				Quantizer  *namedTool `json:"quantizer"`
				Compile    struct {
					From *namedTool `json:"from"` // what compiled the model first
				} `json:"compile"`
			} `json:"made"`
			Calibration *[]Digest `json:"calibration"`
		} `json:"internalParameters"`
		ResolvedDependencies []struct {
			Digest DigestSet `json:"digest"`
		} `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
}

// namedTool is a toolchain in provenance.
type namedTool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// addIngredients adds what a statement of provenance says. Of other builders' it takes the
// dependencies alone.
func (s Statement) addIngredients(in *ingredients) {
	var p builtFrom
	if DecodeSigned(s.Predicate, &p) != nil {
		return
	}
	d := p.BuildDefinition
	for _, dependency := range d.ResolvedDependencies {
		for algorithm, hex := range dependency.Digest {
			in.sources = append(in.sources, Digest(algorithm+":"+hex))
		}
	}
	said := d.InternalParameters
	if d.BuildType != BuildType || said.Toolchain == nil {
		return
	}
	in.stated = true
	in.addTool(said.Toolchain)
	if said.Importer != nil {
		in.addTool(&said.Importer.Tool)
	}
	in.addTool(said.Made.Compressor)
	in.addTool(said.Made.Quantizer)
	in.addTool(said.Made.Compile.From)
	switch {
	case said.Calibration != nil:
		in.calibration = append(in.calibration, *said.Calibration...)
	case said.Made.Quantizer != nil:
		in.calibrationKnown = false
	}
}

func (in *ingredients) addTool(t *namedTool) {
	if t != nil {
		in.toolchains = append(in.toolchains, Toolchain{Name: t.Name, Version: t.Version})
	}
}

// matches returns why a restriction concerns the engine, or "".
func (in ingredients) matches(r Restriction) string {
	const unstated = "no provenance of a trusted builder says what it was made from"
	switch r.Kind {
	case RestrictOperator:
		if slices.Contains(in.operators, r.Digest) {
			return "it carries this library"
		}
		return "" // the manifest lists every library
	case RestrictSource:
		if slices.Contains(in.sources, r.Digest) {
			return "it was made from this source"
		}
	case RestrictCalibration:
		if slices.Contains(in.calibration, r.Digest) {
			return "it was quantized with this data"
		}
		if in.stated && !in.calibrationKnown {
			return "it was quantized, and its provenance does not say with which data"
		}
	case RestrictToolchain:
		if why := in.madeWith(r); why != "" {
			return why
		}
	default:
		return fmt.Sprintf("restrictions of the kind %q are unknown here", r.Kind)
	}
	if !in.stated {
		return unstated
	}
	return ""
}

// madeWith returns which toolchain of the engine is in the range of a restriction, or "".
func (in ingredients) madeWith(r Restriction) string {
	versions, err := ParseVersionRange(r.Versions)
	for _, t := range in.toolchains {
		if t.Name == r.Toolchain && (err != nil || versions.Contains(t.Version)) {
			return fmt.Sprintf("it was made with %s %.40s", t.Name, PlainText(t.Version))
		}
	}
	return ""
}
