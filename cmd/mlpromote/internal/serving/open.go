package serving

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/filegate"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/server"
)

// Open opens the data directory for a service.
func Open(ctx context.Context, at wiring.Location, s *Process) (*Service, error) {
	at.Telemetry = s.telemetry
	here, err := at.OpenCatalog(ctx)
	if err != nil {
		return nil, err
	}
	at.MaxReferrers = s.config.maxReferrers
	sv := &Service{Process: s, at: at, Here: here, keys: at.Keyring(), stop: ctx.Done(), gate: gate.New(here.Blobs.Open, filegate.Inspect)}
	sv.limiter = server.NewLimiter(sv.config.Limit(), clock.Now)
	sv.points = here.Keeper(wiring.SignNoteServed(sv.keys), func() *wiring.Instance { return sv.keeper.InForce().Instance })
	sv.points.May = func(ctx context.Context) error {
		return sv.lastAgreement(sv.keeper.InForce().own).Check(ctx, "environments", "promoter")
	}
	if sv.scrubber, err = sv.newScrubber(); err != nil {
		return sv, err
	}
	sv.operations = sv.newOperations()
	at.Served(here, s.holder, s.config.diskReserve, sv.tellReplica)
	if here.Reserve != nil {
		s.telemetry.Disk(here.Reserve.Room)
	}
	sv.keeper, err = config.Keep(ctx, config.Options[*generation]{
		Read: sv.files(ctx).Read, Build: sv.build, Catalog: here.DB, Alone: at.Database == "", Tell: sv.tell, Now: clock.Now,
	})
	if err == nil {
		sv.tellFindings(ctx)
	}
	return sv, err
}
