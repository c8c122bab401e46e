package build

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// attest signs the release, every engine and every image form, and says how each engine was made. What
// a trusted builder has said already is not said again, so that a rebuild from the
// cache opens no key. It gives the number of bundles that it attached.
func attest(ctx context.Context, b making, environment string, r stored) (int, error) {
	claims, _, err := b.env.Registry.Claims(ctx, environment, r.Release)
	if err != nil {
		return 0, err
	}
	done := b.env.Step("sign")
	attached, err := sign(ctx, b, environment, r, claims)
	note := "signed already"
	if attached > 0 {
		note = ""
	}
	done(note, err)
	return attached, err
}

func sign(ctx context.Context, b making, environment string,
	r stored, claims []evidence.Claim) (int, error) {
	attached := 0
	counted, _ := evidence.Accept(r.Release, claims)
	subjects := r.Subjects()
	if r.Part != "" {
		slices.Reverse(subjects) // a part counts when the history has the statement about it: it is the last
	}
	for _, subject := range subjects {
		statements, err := missingStatements(b, r, subject, counted)
		if err != nil {
			return attached, err
		}
		for _, statement := range statements {
			err := b.env.Attach(ctx, evidence.RoleBuilder, statement, api.Attachment{
				Environment: environment, Model: r.Model, Release: r.Digest, Subject: subject.Digest})
			if err != nil {
				return attached, err
			}
			attached++
		}
	}
	return attached, nil
}

// missingStatements makes the statements about a subject of a release that are not among the claims
// that count.
func missingStatements(b making, r stored, subject artifact.Subject, claims []evidence.Claim) ([][]byte, error) {
	var statements [][]byte
	add := func(predicateType string, predicate any,
		about evidence.StatementSubject, class evidence.Reproducibility) error {
		said := slices.ContainsFunc(claims, func(c evidence.Claim) bool {
			return c.Subject == subject.Digest && c.Statement.PredicateType == predicateType &&
				(class == "" || c.Statement.Reproducible() == class)
		})
		if said {
			return nil
		}
		statement, err := evidence.NewStatement(predicateType, predicate, about)
		statements = append(statements, statement)
		return err
	}
	if r.Part != "" && subject.Digest == r.Digest {
		return missingPart(b, r.Release, claims)
	}
	// cosign names no subject in what it signs, and so neither does this.
	if err := add(evidence.PredicateSign, struct{}{},
		evidence.StatementSubject{Digest: evidence.NewDigestSet(subject.Digest)}, ""); err != nil {
		return nil, err
	}
	if subject.Engine != "" { // the provenance of its engine is that of an image form
		return statements, nil
	}
	engine, ok := r.Engine(subject.Digest)
	if !ok {
		if len(b.left) > 0 || b.origin != nil || len(b.assembled) > 0 { // engines that another release has too say where that came from
			about := evidence.StatementSubject{Name: b.Plan.Model, Digest: evidence.NewDigestSet(subject.Digest)}
			if err := add(evidence.PredicateProvenance, releaseProvenance(b, r.Release), about, ""); err != nil {
				return nil, err
			}
		}
		return statements, nil
	}
	for _, e := range b.engines {
		if e.Engine.Label() != engine.Label() {
			continue
		}
		about := evidence.StatementSubject{Name: b.Plan.Model, Digest: evidence.NewDigestSet(subject.Digest)}
		if err := add(evidence.PredicateProvenance, provenance(b, r, e), about, reproducible(b, e)); err != nil {
			return nil, err
		}
	}
	return statements, nil
}

// missingPart makes the statement about a part, unless a builder said the same at this commit.
func missingPart(b making, r artifact.Release, claims []evidence.Claim) ([][]byte, error) {
	for _, c := range claims {
		if said, ok := partIn(c.Statement); ok && c.Subject == r.Digest && said.Key == b.parts.key && commitIn(c.Statement) == b.parts.commit {
			return nil, nil
		}
	}
	about := releaseProvenance(b, r)
	about.BuildDefinition.ExternalParameters["part"] = b.Plan.PartOf(b.parts.key, b.seen)
	statement, err := evidence.NewStatement(evidence.PredicateProvenance, about,
		evidence.StatementSubject{Name: b.Plan.Model, Digest: evidence.NewDigestSet(r.Digest)})
	return [][]byte{statement}, err
}
