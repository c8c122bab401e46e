package serving

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/scrub"
	"mlpromote.dev/mlpromote/registry/storage"
)

// scrubber looks for damage beside the service.
func (sv *Service) newScrubber() (*scrub.Background, error) {
	c := wiring.ScrubConfig(sv.Here)
	c.Rate, c.Found, c.Repaired, c.Progress = int64(sv.config.scrubRate), sv.damageFound, sv.damageRepaired, sv.telemetry.ScrubbedBytes
	s, err := scrub.New(c)
	if err != nil {
		return nil, err
	}
	return scrub.NewBackground(scrub.Background{
		Scrubber: s, Leases: sv.Here.DB, Holder: sv.holder, Interval: sv.config.scrubInterval, Ended: sv.scrubbed, Status: sv.damageKnown,
	}), nil
}

// suspect has content looked at whose bytes were wrong when somebody asked for it.
func (sv *Service) suspect(_ context.Context, d registry.Digest, _ error) { sv.scrubber.Suspect(d) }

func (sv *Service) damageFound(ctx context.Context, d storage.Damage) {
	sv.logger.ErrorContext(ctx, "content is damaged", "digest", d.Digest, "kind", d.Kind, "detail", d.Detail,
		"repositories", d.Repositories, "releases", affectedNames(d), "hint", "restore its bytes from a backup: docs/how-to/operate.md, Damage")
}

func (sv *Service) damageRepaired(ctx context.Context, d storage.Damage) {
	sv.logger.InfoContext(ctx, "content is not damaged any more", "digest", d.Digest, "repositories", d.Repositories)
}

// damageKnown tells how much damage there is, whoever found it.
func (sv *Service) damageKnown(_ context.Context, n int, since time.Time) {
	sv.telemetry.Damaged(n, since)
	sv.damaged.Store(int64(n))
}

func (sv *Service) scrubbed(ctx context.Context, did scrub.Result, took time.Duration, err error) {
	sv.telemetry.Scrubbed(err)
	if err != nil {
		sv.logger.ErrorContext(ctx, "the scrubber broke off, and goes on in a while", "error", err)
		return
	}
	sv.logger.InfoContext(ctx, "scrubbed", "checked", did.Checked, "bytes", did.Bytes,
		"damaged", did.Damaged, "repaired", did.Repaired, "duration", took)
}

// affectedNames names the releases that need damaged content, with their repositories.
func affectedNames(d storage.Damage) []string {
	var names []string
	for _, r := range d.Releases {
		names = append(names, registry.Repository(r.Environment, r.Model)+":"+AffectedName(r))
	}
	return names
}

// AffectedName is what people call a release that has damaged content.
func AffectedName(r storage.AffectedRelease) string {
	name := ui.Short(r.Release)
	if len(r.Tags) > 0 {
		name = r.Tags[0]
	}
	if r.Head {
		name += " (head)"
	}
	return name
}
