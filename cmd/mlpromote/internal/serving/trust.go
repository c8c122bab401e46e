package serving

import (
	"context"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/trust"
)

// trustPoll is how often a service with a publisher's key looks whether a trust bundle is due.
const trustPoll = 10 * time.Second

// publishTrust publishes a trust bundle whenever what it says has changed, and before the newest
// expires, until ctx ends. Why it cannot is told once, until that changes. Of several replicas one is
// first.
func (sv *Service) publishTrust(ctx context.Context) {
	ticker := time.NewTicker(trustPoll)
	defer ticker.Stop()
	for told := ""; ; {
		said, err := sv.publishOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			told = ""
		case err.Error() != told && !registry.HasCode(err, registry.CodeConflict):
			told = err.Error()
			sv.logger.ErrorContext(ctx, "no trust bundle was published", "error", err, "hint", strings.Join(registry.Hints(err), "; "))
		}
		if said.Digest != "" {
			sv.logger.InfoContext(ctx, "published a trust bundle", "version", said.Trust.Version, "expires", said.Trust.ExpiresOn)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// publishOnce publishes the next bundle if one is due and this service has the key, and returns it.
func (sv *Service) publishOnce(ctx context.Context) (trust.SignedTrust, error) {
	if !sv.at.Publishes() {
		return trust.SignedTrust{}, nil
	}
	g := sv.keeper.InForce()
	signed, fresh, err := g.TrustPublisher(g.own, sv.points.Checkpoint, sv.config.trustLife).Publish(ctx, false)
	if err != nil || !fresh {
		return trust.SignedTrust{}, err
	}
	return signed, nil
}
