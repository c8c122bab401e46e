package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// Publish moves the first environment's head.
func (c *Client) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	var head registry.Head
	if _, err := c.post(ctx, p.Model, wire.OpPublications, wire.Publication{Release: p.Release}, &head); err != nil {
		return registry.Head{}, err
	}
	if head.Release != p.Release {
		return registry.Head{}, c.strange("head", fmt.Errorf("want the published %[2]s, got %[1]q", head.Release, p.Release))
	}
	return head, nil
}

// Attach adds evidence. A service of an earlier version gets it without per-case figures.
func (c *Client) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	body := wire.Attachment{Environment: a.Environment, Release: a.Release, Subject: a.Subject, Bundle: a.Bundle, Figures: a.Figures}
	var attached wire.Attached
	_, err := c.post(ctx, a.Model, wire.OpEvidence, body, &attached)
	if registry.HasCode(err, registry.CodeInvalid) && strings.Contains(err.Error(), unknownFigures) {
		body.Figures = nil
		_, err = c.post(ctx, a.Model, wire.OpEvidence, body, &attached)
	}
	if err != nil {
		return "", err
	}
	if err := attached.Bundle.Validate(); err != nil {
		return "", c.strange("bundle", err)
	}
	return attached.Bundle, nil
}

// Attest has the service sign what its caller says, and attach it.
func (c *Client) Attest(ctx context.Context, r registry.AttestRequest) (registry.Attested, error) {
	body := wire.Attestation{Kind: r.Kind, Environment: r.Environment, Release: r.Release, Subject: r.Subject, Comment: r.Comment,
		ExpiresOn: r.Expires, Accepts: r.Accepts}
	var attested registry.Attested
	if _, err := c.post(ctx, r.Model, wire.OpAttestations, body, &attested); err != nil {
		return registry.Attested{}, err
	}
	if attested.Kind != r.Kind || attested.Release != r.Release || attested.Evidence.Validate() != nil {
		return registry.Attested{}, c.strange("attestation", fmt.Errorf("want a %s of %s, got a %.40q of %.80q", r.Kind, r.Release, attested.Kind, attested.Release))
	}
	return attested, nil
}

// unknownFigures is what services answer that are older than per-case figures.
const unknownFigures = `unknown field "figures"`

// Promote promotes a release.
func (c *Client) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	body := wire.PromoteRequest{Ref: r.Ref, From: r.From, To: r.To, DryRun: r.DryRun, BreakGlass: r.BreakGlass, Downgrade: r.Downgrade, Reason: r.Reason, Replaces: r.Replaces}
	return c.move(ctx, r.Model, wire.OpPromotions, body)
}

// Rollback moves the head to an earlier head.
func (c *Client) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	body := wire.RollbackRequest{
		Environment: r.Environment,
		Version:     r.Version,
		Reason:      r.Reason,
		Node:        r.Node,
		DryRun:      r.DryRun, Replaces: r.Replaces,
	}
	return c.move(ctx, r.Model, wire.OpRollbacks, body)
}

func (c *Client) move(ctx context.Context, model, operation string, body any) (registry.Promotion, error) {
	var promotion registry.Promotion
	problem, err := c.post(ctx, model, operation, body, &promotion)
	switch {
	case problem != nil && problem.Promotion != nil:
		return *problem.Promotion, err
	case err != nil:
		return registry.Promotion{}, err
	}
	if err := promotion.Release.Validate(); err != nil {
		return registry.Promotion{}, c.strange("promotion", err)
	}
	return promotion, nil
}

// SetHold stops promotions from moving a head.
func (c *Client) SetHold(ctx context.Context, environment, model, reason string) error {
	_, err := c.post(ctx, model, wire.OpHolds, wire.Hold{Environment: environment, Reason: reason}, nil)
	return err
}

// AcceptHistory records that a person accepts what the history does not explain.
func (c *Client) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	_, err := c.post(ctx, model, wire.OpAcceptances, wire.HistoryAcceptance{Environment: environment, Reason: reason}, nil)
	return err
}

// ReleaseHold lets promotions move a held head again.
func (c *Client) ReleaseHold(ctx context.Context, r registry.HoldRelease) error {
	_, err := c.post(ctx, r.Model, wire.OpHoldReleases, wire.HoldRelease{Environment: r.Environment, Reason: r.Reason, Seen: r.Seen}, nil)
	return err
}

// TrustBundle returns the newest trust bundle. The caller verifies its signature.
func (c *Client) TrustBundle(ctx context.Context) (registry.SignedTrust, error) {
	var signed registry.SignedTrust
	if err := c.get(ctx, wire.TrustBundlePath, nil, &signed); err != nil {
		return registry.SignedTrust{}, err
	}
	return signed, c.checkTrust(signed)
}

// PublishTrust publishes the next trust bundle.
func (c *Client) PublishTrust(ctx context.Context, bundle []byte) (registry.SignedTrust, error) {
	var signed registry.SignedTrust
	if _, err := c.send(ctx, http.MethodPost, wire.TrustBundlePath, wire.TrustBundle{Bundle: bundle}, &signed); err != nil {
		return registry.SignedTrust{}, err
	}
	return signed, c.checkTrust(signed)
}

// checkTrust refuses an answer that contradicts itself.
func (c *Client) checkTrust(signed registry.SignedTrust) error {
	if found := digest.FromBytes(signed.Bundle); found != signed.Digest {
		return c.strange("trust bundle", fmt.Errorf("the bundle has the digest %s, want %s", found, signed.Digest))
	}
	return nil
}

// Restrict puts a signed restriction list in force.
func (c *Client) Restrict(ctx context.Context, environment string, bundle []byte) (registry.SignedRestrictions, error) {
	var signed registry.SignedRestrictions
	body := wire.Restriction{Environment: environment, Bundle: bundle}
	if _, err := c.send(ctx, http.MethodPost, wire.RestrictionsPath, body, &signed); err != nil {
		return registry.SignedRestrictions{}, err
	}
	return signed, c.checkRestrictions(environment, signed)
}
