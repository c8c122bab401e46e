package mem

import (
	"sync"

	"mlpromote.dev/mlpromote/registry"
)

// DB is [registry.Refs], [registry.Catalog], [registry.Intents], [registry.Tokens] and
// [registry.Secrets] over the same maps, as one database is. Make one with [New].
type DB struct {
	mu        sync.RWMutex
	blobs     map[member]int64 // sizes
	manifests map[member]registry.Manifest
	tags      map[tagKey]registry.Digest
	heads     map[headKey]registry.Head
	intents   map[headKey]registry.Intent
	history   []registry.Event
	tokens    map[string]registry.Token
	secrets   map[string][]byte
}

var (
	_ registry.Refs    = (*DB)(nil)
	_ registry.Catalog = (*DB)(nil)
	_ registry.Intents = (*DB)(nil)
)

type (
	member struct {
		repository string
		digest     registry.Digest
	}
	tagKey  struct{ repository, tag string }
	headKey struct{ environment, model string }
)

// New is an empty database.
func New() *DB {
	return &DB{
		blobs:     make(map[member]int64),
		manifests: make(map[member]registry.Manifest),
		tags:      make(map[tagKey]registry.Digest),
		heads:     make(map[headKey]registry.Head),
		intents:   make(map[headKey]registry.Intent),
		tokens:    make(map[string]registry.Token),
		secrets:   make(map[string][]byte),
	}
}
