package approver

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Approvals signs that a release may be promoted to an environment, or takes that back, and attaches it
// where the promotion reads it. All fields are required, but for Attest.
type Approvals struct {
	Registry     Registry
	Environments policy.Environments
	Sign         storage.SignEvidence // asked for the approver's role
	Now          storage.Clock
	// Attest has a service sign for the caller, who then needs no key. Nil: Sign signs.
	Attest func(ctx context.Context, r evidence.AttestRequest) (evidence.Attested, error)
}

// Request is what an approver says about a release.
type Request struct {
	Environment string // the destination
	Model       string
	Release     string // tag or digest in the environment that the destination takes releases from; empty: its head
	Comment     string
	Expires     time.Duration // after which the approval does not count; 0: it does not expire
	Accepts     []string      // lines of requirements that are accepted although they are unmet
	Withdraw    bool          // take back what the same key approved
	// BreakGlass are requirements that the promotion may skip in an emergency. With any, Expires is
	// required, and the statement counts for the present head of the destination alone.
	BreakGlass []string
}

// Given is an approval, or a withdrawal, that was attached.
type Given struct {
	Environment string            `json:"environment"` // the destination
	From        string            `json:"from"`        // where it was attached
	Model       string            `json:"model"`
	Version     string            `json:"version"` // tag of the release
	Release     registry.Digest   `json:"release"`
	Evidence    registry.Digest   `json:"evidence"` // of the bundle's manifest
	Approval    evidence.Approval `json:"approval"`
	// BreakGlass is the statement in place of Approval, if the request names requirements to skip.
	BreakGlass *evidence.BreakGlass `json:"breakGlass,omitempty"`
	// Requirement is what the destination's rule says now; nil if it asks for no approvals. The service
	// decides again when the release is promoted.
	Requirement *policy.Requirement `json:"requirement,omitempty"`
}

// Give signs what the request says, and attaches it to the release in the environment that the
// destination takes releases from. Errors: CodeInvalid if nothing is promoted to the environment, or
// for a text that [evidence.Approval.Validate] refuses; CodeNotFound if the release is not there yet,
// or there is nothing to withdraw; CodeUnavailable without an approver's key; those of Attach.
func (a Approvals) Give(ctx context.Context, req Request) (Given, error) {
	from, to, err := a.Environments.Edge("", req.Environment)
	if err != nil {
		return Given{}, err
	}
	r, err := a.Registry.Release(ctx, from.Name, req.Model, req.Release)
	if err != nil {
		return Given{}, err
	}
	seen, err := history.NewestHash(ctx, a.Registry, r.Model)
	if err != nil {
		return Given{}, err
	}
	given := Given{Environment: to.Name, From: from.Name, Model: r.Model, Version: r.Tag(), Release: r.Digest, Approval: a.says(req, r.Model)}
	given.Approval.History = evidence.NewDigestSet(seen)
	if len(req.BreakGlass) > 0 {
		if err := a.breakGlass(ctx, req, to, &given); err != nil {
			return Given{}, err
		}
	}
	if req.Withdraw {
		if err := a.canWithdraw(ctx, given, r); err != nil {
			return Given{}, err
		}
	}
	if err = a.say(ctx, &given); err != nil || given.BreakGlass != nil {
		return given, err
	}
	given.Requirement, err = a.requirement(ctx, given, to, r)
	return given, err
}

// says makes the predicate of a request.
func (a Approvals) says(req Request, model string) evidence.Approval {
	says := evidence.Approval{
		ResourceURI: a.Environments.ResourceURI(req.Environment, model), Comment: req.Comment,
		ApprovedOn: a.Now().UTC(), Accepts: req.Accepts, Withdrawn: req.Withdraw,
	}
	if req.Expires != 0 {
		says.ExpiresOn = says.ApprovedOn.Add(req.Expires)
	}
	return says
}

// canWithdraw refuses a withdrawal where no approval stands.
func (a Approvals) canWithdraw(ctx context.Context, g Given, r artifact.Release) error {
	claims, _, err := a.Registry.Claims(ctx, g.From, r)
	if err != nil {
		return err
	}
	for _, given := range evidence.Approvals(r, claims, a.Now()) {
		if given.ResourceURI == g.Approval.ResourceURI && given.State == evidence.ApprovalStands {
			return nil
		}
	}
	counted, _ := evidence.Accept(r, claims)
	for _, c := range counted {
		if b, ok := c.BreakGlass(); ok && b.ResourceURI == g.Approval.ResourceURI && a.Now().Before(b.ExpiresOn) {
			return nil
		}
	}
	return registry.Errorf(registry.CodeNotFound, "nothing to withdraw: no approval of %s %s for %s stands", g.Model, g.Version, g.Environment)
}

// say signs and attaches the approval, or has the service do both.
func (a Approvals) say(ctx context.Context, g *Given) (err error) {
	if a.Attest == nil {
		g.Evidence, err = a.attach(ctx, *g)
		return err
	}
	if g.BreakGlass != nil {
		return registry.Errorf(registry.CodeInvalid, "break-glass needs the key of an approver: the service does not sign it for people")
	}
	req := evidence.AttestRequest{Kind: evidence.AttestApproval, Environment: g.Environment, Model: g.Model, Release: g.Release,
		Comment: g.Approval.Comment, Expires: g.Approval.ExpiresOn, Accepts: g.Approval.Accepts}
	if g.Approval.Withdrawn {
		req.Kind = evidence.AttestWithdrawal
	}
	attested, err := a.Attest(ctx, req)
	g.Evidence, g.Approval.Person = attested.Evidence, &attested.Person
	return err
}

// attach signs the approval and attaches it.
func (a Approvals) attach(ctx context.Context, g Given) (registry.Digest, error) {
	statement, err := g.statement()
	if err != nil {
		return "", err
	}
	bundle, err := a.Sign(ctx, evidence.RoleApprover, statement)
	if err != nil {
		return "", err
	}
	return a.Registry.Attach(ctx, api.Attachment{
		Environment: g.From, Model: g.Model, Release: g.Release, Subject: g.Release, Bundle: bundle,
	})
}

// statement makes what is signed.
func (g Given) statement() ([]byte, error) {
	about := evidence.StatementSubject{Name: g.Model, Digest: evidence.NewDigestSet(g.Release)}
	if g.BreakGlass != nil {
		return policy.NewBreakGlass(about, *g.BreakGlass)
	}
	return evidence.NewApproval(about, g.Approval)
}

// requirement says what the rule of the destination has now.
func (a Approvals) requirement(ctx context.Context, g Given, to policy.Environment, r artifact.Release) (*policy.Requirement, error) {
	if to.Approvals.Count == 0 {
		return nil, nil
	}
	claims, _, err := a.Registry.Claims(ctx, g.From, r)
	if err != nil {
		return nil, err
	}
	demands := to.Policy()
	demands.Promotion = policy.PromotionContext{Resource: g.Approval.ResourceURI, Now: a.Now()}
	requirement := demands.CheckApprovals(r, claims)
	return &requirement, nil
}
