//go:build cgo

package pipeline_test

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// maxSigningCalls is how often a build of six engines may ask the registry about evidence: for the claims that are
// there, and once for each of 19 statements. Over a network each is a round trip, and 30 are the limit.
const maxSigningCalls = 22

// counted counts what signing asks a registry.
type counted struct {
	api.Interface
	claims, attachments int
}

func (c *counted) Claims(ctx context.Context, environment string, r artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	c.claims++
	return c.Interface.Claims(ctx, environment, r)
}

func (c *counted) Attach(ctx context.Context, a api.Attachment) (registry.Digest, error) {
	c.attachments++
	return c.Interface.Attach(ctx, a)
}

// A release of six engines is signed in few calls, and signed again in one.
func TestSigningCalls(t *testing.T) {
	t.Parallel()
	const six = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
variants: [fp32, {name: int8, quantize: {method: dynamic}}]
targets: [linux/amd64/v1, linux/amd64/v2, linux/amd64/v3]
`
	w := setup(t, 1.5)
	n := &counted{Interface: w.Interface}
	w.p.Registry = n
	first := w.built(t, six, build.Options{})
	if len(first.Release.Engines) != 6 {
		t.Fatalf("%d engines, want 6", len(first.Release.Engines))
	}
	if n.attachments != 19 || n.claims+n.attachments > maxSigningCalls {
		t.Errorf("%d lists of claims and %d attachments, want 19 attachments, and %d calls at most", n.claims, n.attachments, maxSigningCalls)
	}
	before := *n
	w.built(t, six, build.Options{})
	if n.attachments != before.attachments {
		t.Errorf("signed again: %d more attachments, want none", n.attachments-before.attachments)
	}
}
