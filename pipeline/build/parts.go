package build

import (
	"cmp"
	"context"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

// wantedParts is what parts must be to make one release.
type wantedParts struct {
	environment string
	common      plan.Plan // without engines and drivers
	key         registry.Digest
	asked       []plan.Requested // every engine of the spec, in the order in which nodes get them
	commit      string           // of the repository; empty: not known
}

// SetAside is a part, or an engine of one, that a release is not made of, and why.
type SetAside struct {
	Part   registry.Digest `json:"part"`
	Engine registry.Digest `json:"engine,omitempty"` // empty: all of the part
	Label  string          `json:"label,omitempty"`
	Reason string          `json:"reason"`
}

// foundPart is a part that counts.
type foundPart struct {
	release  artifact.Release
	said     plan.Part
	recorded int64 // number of the event that made it a part
}

// onlyTargets takes the engines of other targets out of in. It returns what the parts of the release have in common; nil
// without targets. Errors: CodeInvalid for a target that the spec does not have.
func onlyTargets(in *ingest.Inputs, targets []string) (*wantedParts, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	all := in.Engines
	var names []string
	in.Engines = nil
	for _, e := range all {
		if !slices.Contains(names, e.Target.Name) {
			names = append(names, e.Target.Name)
		}
		if slices.Contains(targets, e.Target.Name) {
			in.Engines = append(in.Engines, e)
		} else {
			in.Others = append(in.Others, e)
		}
	}
	if err := run.CheckTargets(targets, names); err != nil {
		return nil, err
	}
	return newWantedParts(*in, all)
}

func newWantedParts(in ingest.Inputs, all []plan.Requested) (*wantedParts, error) {
	common, key, err := plan.Common(in.Inputs, all)
	return &wantedParts{common: common, key: key, asked: all}, err
}

// find reads the parts that are there, in the order in which the history got them, and what is set aside. Everything
// that a part claims is checked: a builder signed it and its engines, it is of this spec, of these files and of this commit.
func (w wantedParts) find(ctx context.Context, from api.Interface) ([]foundPart, []SetAside, error) {
	events, err := from.History(ctx, history.HistoryQuery{Environment: w.environment, Model: w.common.Model, Kind: history.EventAttach})
	if err != nil {
		return nil, nil, err
	}
	var parts []foundPart
	var aside []SetAside
	seen := make(map[registry.Digest]bool)
	for _, e := range events {
		if e.PredicateType != evidence.PredicateProvenance || e.Subject != e.Release || e.Version != w.common.Version || seen[e.Release] {
			continue
		}
		seen[e.Release] = true
		part, reason, err := w.read(ctx, from, e.Release)
		switch {
		case registry.HasCode(err, registry.CodeNotFound): // collected
		case registry.HasCode(err, registry.CodeDigest), registry.HasCode(err, registry.CodeTrust), registry.HasCode(err, registry.CodeInvalid):
			aside = append(aside, SetAside{Part: e.Release, Reason: registry.PlainText(err.Error())})
		case err != nil:
			return nil, nil, err
		case reason != "":
			aside = append(aside, SetAside{Part: e.Release, Reason: reason})
		case part.release.Digest != "":
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(parts, func(a, b foundPart) int { return cmp.Compare(a.recorded, b.recorded) })
	return parts, aside, nil
}

// read reads a part, or says why it does not count. A whole release is neither.
func (w wantedParts) read(ctx context.Context, from api.Interface, d registry.Digest) (foundPart, string, error) {
	r, err := from.Release(ctx, w.environment, w.common.Model, string(d))
	if err != nil || r.Part == "" {
		return foundPart{}, "", err
	}
	switch {
	case r.Model != w.common.Model:
		return foundPart{}, "it is of the model " + registry.PlainText(r.Model), nil
	case r.Version != w.common.Version:
		return foundPart{}, "it is of version " + registry.PlainText(r.Version), nil
	case r.Part != w.key:
		return foundPart{}, "it was built of other files or by another spec", nil
	}
	claims, _, err := from.Claims(ctx, w.environment, r)
	if err != nil {
		return foundPart{}, "", err
	}
	counted, _ := evidence.Accept(r, claims)
	part, reason := w.statement(r, counted)
	if reason == "" {
		reason = w.checkEngines(part, counted)
	}
	return part, reason, nil
}

// statement finds the first statement of a builder that makes the index a part of this release.
func (w wantedParts) statement(r artifact.Release, counted []evidence.Claim) (foundPart, string) {
	reason := "no trusted builder says what it was built from"
	var first foundPart
	for _, c := range counted {
		if c.Subject != r.Digest || c.Statement.PredicateType != evidence.PredicateProvenance {
			continue
		}
		said, ok := partIn(c.Statement)
		commit := commitIn(c.Statement)
		switch {
		case !ok || said.Key != w.key:
			reason = "its builder signed it for another spec"
		case commit != w.commit:
			reason = "it was built from commit " + cmp.Or(registry.PlainText(commit), "(not known)") + ", and not from " + cmp.Or(w.commit, "(not known)")
		case c.Recorded == 0:
			reason = "the history does not have the statement of its builder"
		case first.recorded == 0 || c.Recorded < first.recorded:
			first = foundPart{release: r, said: said, recorded: c.Recorded}
		}
	}
	if first.recorded > 0 {
		return first, ""
	}
	return foundPart{}, reason
}

// checkEngines compares the engines of a part with what its builder says and what the spec asks for, and wants a
// builder's signature and provenance for each. It says what is wrong; empty: nothing.
func (w wantedParts) checkEngines(part foundPart, counted []evidence.Claim) string {
	joined, err := w.common.Join(w.asked, part.said)
	if err != nil || joined.Digest != part.release.Plan {
		return "its plan is not that of this spec and these files"
	}
	if len(part.said.Engines) != len(part.release.Engines) {
		return "it does not have the engines that its builder says"
	}
	for _, e := range part.release.Engines {
		planned := slices.IndexFunc(part.said.Engines, func(p plan.Engine) bool { return p.Label() == e.Label() })
		if planned < 0 || !part.said.Engines[planned].Makes(e) {
			return e.Label() + " is not what its builder says"
		}
		if !slices.ContainsFunc(w.asked, func(r plan.Requested) bool { return r.Asked(part.said.Engines[planned]) }) {
			return e.Label() + " is not what the spec asks for"
		}
		for _, given := range []struct{ predicate, what string }{{evidence.PredicateSign, "signature"}, {evidence.PredicateProvenance, "provenance"}} {
			has := func(c evidence.Claim) bool {
				return c.Subject == e.Digest && c.Statement.PredicateType == given.predicate
			}
			if !slices.ContainsFunc(counted, has) {
				return e.Label() + " has no " + given.what + " of a trusted builder"
			}
		}
	}
	return ""
}

// chosen is the part that an engine is taken from.
type chosen struct {
	part   foundPart
	engine artifact.Engine
}

// choose takes for each label the engine that the history has first, among the parts that were measured by the same run of
// the reference as the first part. parts are in the order of the history, so that every machine chooses the same.
func choose(parts []foundPart) (map[string]chosen, []SetAside) {
	all := make(map[string]chosen)
	var aside []SetAside
	for _, p := range parts {
		if p.release.Sources != parts[0].release.Sources {
			aside = append(aside, SetAside{Part: p.release.Digest,
				Reason: "it has another run of the reference model than the first part, " + string(parts[0].release.Digest) +
					": build it again"})
			continue
		}
		for _, e := range p.release.Engines {
			first, taken := all[e.Label()]
			if !taken {
				all[e.Label()] = chosen{p, e}
			} else if first.engine.Digest != e.Digest {
				aside = append(aside, SetAside{Part: p.release.Digest, Engine: e.Digest, Label: e.Label(),
					Reason: "it was built again with other bytes: " + string(first.engine.Digest) + " was recorded first and counts"})
			}
		}
	}
	return all, aside
}

// assembly is what provenance says of a release that was put together from parts.
type assembly struct {
	Key registry.Digest `json:"key"`
}

// saidOfParts is what provenance can say of parts.
type saidOfParts struct {
	BuildDefinition struct {
		ExternalParameters struct {
			Part      *plan.Part `json:"part"`
			Assembled *assembly  `json:"assembled"`
		} `json:"externalParameters"`
	} `json:"buildDefinition"`
}

// partIn reads what a builder says of a part.
func partIn(s evidence.Statement) (plan.Part, bool) {
	var said saidOfParts
	if s.PredicateType != evidence.PredicateProvenance || registry.DecodeSigned(s.Predicate, &said) != nil ||
		said.BuildDefinition.ExternalParameters.Part == nil {
		return plan.Part{}, false
	}
	return *said.BuildDefinition.ExternalParameters.Part, true
}

// commitIn reads the commit that a build was made from; empty if it is not known.
func commitIn(s evidence.Statement) string {
	if origin := s.Origin(); origin != nil {
		return origin.Git.Commit
	}
	return ""
}
