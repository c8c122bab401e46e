package restriction

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// BuildType is the buildType of provenance by this program. Provenance of other builders does not
// say what an engine was made from in a form that rules read.
const BuildType = "https://mlpromote.dev/build/v1"

// RestrictionMatch is a restriction that concerns an engine.
type RestrictionMatch struct {
	Restriction evidence.Restriction `json:"restriction"`
	// Why says what the engine was made from or with, or that nothing signed says it.
	Why string `json:"why"`
}

// Match lists the restrictions that concern an engine of the release. claims are about the release.
// It compares the manifest of the engine, and the provenance of trusted builders. What no
// provenance says counts as restricted: a restriction must not miss an engine.
//
// It does not say whether restrictions are known: see [policy.Policy.Check] and [policy.CheckEngineStanding].
func (rs Restrictions) Match(r artifact.Release, e artifact.Engine, claims []evidence.Claim) []RestrictionMatch {
	if len(rs.List) == 0 {
		return nil
	}
	r.Engines = []artifact.Engine{e}
	counted, _ := evidence.Count(r, claims)
	return rs.MatchCounted(r, e, counted)
}

// MatchCounted is [Restrictions.Match] of claims that count.
func (rs Restrictions) MatchCounted(r artifact.Release, e artifact.Engine, cs evidence.Counted) []RestrictionMatch {
	var matches []RestrictionMatch
	if len(rs.List) == 0 {
		return nil
	}
	in := ingredientsOf(r, e, cs)
	for _, restriction := range rs.List {
		if why := in.matches(restriction); why != "" {
			matches = append(matches, RestrictionMatch{restriction, why})
		}
	}
	return matches
}

// ingredients is what an engine was made from and with.
type ingredients struct {
	stated     bool              // a trusted builder said it
	sources    []registry.Digest // files of the model, the reference, the sources, and all other dependencies
	toolchains []artifact.Toolchain
	operators  []registry.Digest
	// calibration is the data that quantizers read. Builds before this field say only that they
	// quantized, so that it is unknown.
	calibration      []registry.Digest
	calibrationKnown bool
}

// ingredientsOf collects what the manifest and all counted provenance of an engine say. It is
// known if one of them says it; what a second one adds is added.
func ingredientsOf(r artifact.Release, e artifact.Engine, cs evidence.Counted) ingredients {
	in := ingredients{
		sources:          []registry.Digest{r.Sources, e.Sources, e.Reference},
		toolchains:       []artifact.Toolchain{e.Toolchain},
		calibrationKnown: true,
	}
	for _, library := range e.Operators {
		in.operators = append(in.operators, library.Digest)
	}
	for _, c := range cs.Of(evidence.PredicateProvenance, e.Digest) {
		addIngredients(c.Statement, &in)
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
			Calibration *[]registry.Digest `json:"calibration"`
		} `json:"internalParameters"`
		ResolvedDependencies []struct {
			Digest evidence.DigestSet `json:"digest"`
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
func addIngredients(s evidence.Statement, in *ingredients) {
	var p builtFrom
	if registry.DecodeSigned(s.Predicate, &p) != nil {
		return
	}
	d := p.BuildDefinition
	for _, dependency := range d.ResolvedDependencies {
		for algorithm, hex := range dependency.Digest {
			in.sources = append(in.sources, registry.Digest(algorithm+":"+hex))
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
		in.toolchains = append(in.toolchains, artifact.Toolchain{Name: t.Name, Version: t.Version})
	}
}

// matches returns why a restriction concerns the engine, or "".
func (in ingredients) matches(r evidence.Restriction) string {
	const unstated = "no provenance of a trusted builder says what it was made from"
	switch r.Kind {
	case evidence.RestrictOperator:
		if slices.Contains(in.operators, r.Digest) {
			return "it carries this library"
		}
		return "" // the manifest lists every library
	case evidence.RestrictSource:
		if slices.Contains(in.sources, r.Digest) {
			return "it was made from this source"
		}
	case evidence.RestrictCalibration:
		if slices.Contains(in.calibration, r.Digest) {
			return "it was quantized with this data"
		}
		if in.stated && !in.calibrationKnown {
			return "it was quantized, and its provenance does not say with which data"
		}
	case evidence.RestrictToolchain:
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
func (in ingredients) madeWith(r evidence.Restriction) string {
	versions, err := artifact.ParseVersionRange(r.Versions)
	for _, t := range in.toolchains {
		if t.Name == r.Toolchain && (err != nil || versions.Contains(t.Version)) {
			return fmt.Sprintf("it was made with %s %.40s", t.Name, registry.PlainText(t.Version))
		}
	}
	return ""
}
