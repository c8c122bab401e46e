package policy

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// adviceBuild is what to do about a missing statement of a builder, for who can build.
const adviceBuild = ": run mlpromote build"

// judgeSignature decides whether a builder signed the subject.
func judgeSignature(j judging, req *Requirement, s artifact.Subject) {
	req.present(j.counted.Of(evidence.PredicateSign, s.Digest), "signed by a builder", "no signature of a trusted builder", adviceBuild)
	if image, ok := imageOf(j.release, s); ok && req.Met && len(j.counted.Of(evidence.PredicateSign, image)) == 0 {
		req.present(nil, "", "no signature of a trusted builder about its image form "+string(image), adviceBuild)
	}
}

// imageOf returns the image form of an engine, which is judged with it.
func imageOf(r artifact.Release, s artifact.Subject) (registry.Digest, bool) {
	e, ok := r.Engine(s.Digest)
	return e.Image.Digest, ok && e.Image.Digest != ""
}

func judgeProvenance(j judging, req *Requirement, e artifact.Engine) {
	req.present(j.counted.Of(evidence.PredicateProvenance, e.Digest), "built by a builder", "no provenance of a trusted builder", adviceBuild)
}

// judgeSeparation requires that the keys that built differ from the keys that verified or
// approved. It looks at an engine and its release together.
func judgeSeparation(j judging, req *Requirement, e artifact.Engine) {
	var builders, others []evidence.Claim
	for _, s := range []registry.Digest{e.Digest, j.release.Digest} {
		builders = slices.Concat(builders, j.counted.Of(evidence.PredicateSign, s), j.counted.Of(evidence.PredicateProvenance, s))
		others = slices.Concat(others, j.counted.Of(evidence.PredicateParity, s), j.counted.Of(evidence.PredicatePerformance, s),
			j.counted.Of(evidence.PredicateApproval, s), j.counted.Of(evidence.PredicateBreakGlass, s))
	}
	req.Met, req.Detail = len(builders) > 0, "builder and verifier have separate keys"
	for _, b := range builders {
		for _, o := range others {
			if b.Signer == o.Signer {
				req.refuse("key %s belongs to a builder and a verifier: give each role a separate key", b.Signer)
				req.cite(o)
			}
		}
	}
	if len(builders) == 0 {
		req.Detail = "no builder's signature to compare with"
	}
}

// judgeOperators decides for each engine with operator libraries whether all of them are
// allowed. They are native code that runs with the engine.
func judgeOperators(j judging) []Requirement {
	var all []Requirement
	for _, e := range j.release.Engines {
		if len(e.Operators) == 0 {
			continue
		}
		req := Requirement{Subject: e.Label(), Met: true}
		for _, library := range e.Operators {
			if !slices.Contains(j.policy.Operators, library.Digest) {
				req.refuse("it carries native code that is not allowed here, %s (%s): build the model without it, or review its source and "+
					"add the digest to operators: of this environment in environments.yaml", library.Path, library.Digest)
			}
		}
		if req.Met {
			req.Detail = fmt.Sprintf("its %d operator libraries are allowed by digest", len(e.Operators))
		}
		all = append(all, req)
	}
	return all
}

// judgeReproducible decides whether builders found the wanted class for the engine. The worst
// of several findings counts.
func judgeReproducible(want evidence.Reproducibility) func(judging, *Requirement, artifact.Engine) {
	return func(j judging, req *Requirement, e artifact.Engine) {
		found := evidence.Reproducibility("")
		for _, c := range j.counted.Of(evidence.PredicateProvenance, e.Digest) {
			class := c.Statement.Reproducible()
			if class == "" {
				continue
			}
			req.cite(c)
			if found == "" || found.AtLeast(class) {
				found = class
			}
		}
		switch {
		case found == "":
			req.Detail = "it was not built twice: run mlpromote build --check-reproducible"
		case found.AtLeast(want):
			req.Met, req.Detail = true, fmt.Sprintf("built twice with the class %s", found)
		default:
			req.refuse("two builds gave the class %s, but %s is required: choose a toolchain or variant that reaches it", found, want)
		}
	}
}

// judgeCIJob requires that a provenance that counts names the job.
func judgeCIJob(j judging, req *Requirement, s artifact.Subject) {
	job := j.policy.CIJob
	req.Detail = "no provenance of a trusted builder: run mlpromote build in " + job.String()
	for _, c := range j.counted.Of(evidence.PredicateProvenance, s.Digest) {
		why := job.differs(c.Statement.Origin())
		if why == "" {
			req.Met, req.Detail, req.Evidence = true, "built in "+job.String(), nil
			req.cite(c)
			return
		}
		req.Detail = "want that it was built in " + job.String() + ": " + why
		req.cite(c)
	}
}
