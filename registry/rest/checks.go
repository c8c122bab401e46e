package rest

import (
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// These functions find what contradicts a request in its answer, for clients.

func checkPublished(q api.Publication, a history.Head) (what string, err error) {
	if a.Release != q.Release {
		err = fmt.Errorf("want the published %[2]s, got %[1]q", a.Release, q.Release)
	}
	return "head", err
}

func checkAttested(q evidence.AttestRequest, a evidence.Attested) (what string, err error) {
	if a.Kind != q.Kind || a.Release != q.Release || a.Evidence.Validate() != nil {
		err = fmt.Errorf("want a %s of %s, got a %.40q of %.80q", q.Kind, q.Release, a.Kind, a.Release)
	}
	return "attestation", err
}

func checkPromotion[Req any](_ Req, a api.Promotion) (what string, err error) {
	return "promotion", a.Release.Validate()
}

func checkPromotionCheck(q api.PromotionQuery, a api.PromotionCheck) (what string, err error) {
	same := (q.Version == "" || a.Version == q.Version) && (q.Digest == "" || a.Digest == q.Digest)
	switch {
	case !same || a.Model != q.Model || a.Environment != q.Environment:
		err = errors.New("it is about another release")
	case a.Allowed && len(a.Reasons) > 0:
		err = errors.New("it allows and has reasons why not")
	}
	return "promotion check", err
}

func checkNodeReport(q NodeReport, a storage.NodeReport) (what string, err error) {
	if a.Node != q.Node || a.Engine != q.Engine {
		err = fmt.Errorf("want %s with %s, got %.40q with %.80q", q.Node, q.Engine, a.Node, a.Engine)
	}
	return "node report", err
}

// checkRestrictions refuses an answer about another environment, and one that contradicts itself. Whoever does not
// trust the service verifies the bundle.
func checkRestrictions(environment string, a restriction.SignedRestrictions) error {
	if a.Environment != environment {
		return fmt.Errorf("want those of %q, got %q", environment, a.Environment)
	}
	if found := digest.FromBytes(a.Bundle); a.Digest != "" && found != a.Digest {
		return fmt.Errorf("the bundle has the digest %s, want %s", found, a.Digest)
	}
	return nil
}

func checkTrust(a trust.SignedTrust) error {
	if found := digest.FromBytes(a.Bundle); found != a.Digest {
		return fmt.Errorf("the bundle has the digest %s, want %s", found, a.Digest)
	}
	return nil
}
