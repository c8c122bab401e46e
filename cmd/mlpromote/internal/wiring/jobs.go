package wiring

import (
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/scrub"
	"mlpromote.dev/mlpromote/registry/service"
)

// CollectorConfig is what collects in a data directory.
func CollectorConfig(here *Local, environments policy.Environments, keep gc.Retention, alone bool) gc.Config {
	return gc.Config{
		Environments: environments, Store: here.DB, Catalog: here.DB, Intents: here.DB, Blobs: here.Blobs.stored, Remover: here.Blobs.remover,
		Garbage: here.DB, Clock: here.DB, Owner: seenOwner{here.Blobs.owner, here.Replica}, Lock: here.DB,
		Retention: keep, Alone: alone, Sweep: here.Blobs.Uploads.Sweep,
		Surplus: composed.NewComposer(here.DB, here.Blobs.stored, here.DB, composed.Least).Surplus,
		Expire:  service.NodeReports{Table: here.DB.NodeReports(), Clock: here.DB}.Expire,
	}
}

// ScrubConfig is what reads the content of a data directory again.
func ScrubConfig(here *Local) scrub.Config {
	db := here.DB
	return scrub.Config{
		Blobs: here.Blobs.Blobs, Inventory: db, Store: db, Catalog: db, Damages: db.Damages(), States: db.ScrubStates(), Clock: db,
	}
}
