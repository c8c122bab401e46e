package mem

import (
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// DB is every port that a database fills, over the same maps, as one database is. Make one
// with [New].
type DB struct {
	Now registry.Clock // of the catalog; nil means time.Now; to be set before use

	mu        sync.RWMutex
	blobs     map[member]int64 // sizes
	manifests map[member]registry.Manifest
	tags      map[tagKey]registry.Digest
	heads     map[headKey]registry.Head
	intents   map[headKey]registry.Intent
	recorded  map[recordedKey]registry.Record
	uploads   map[string]registry.UploadState
	history   []registry.Event
	ages      map[recordKey]age
	marked    map[registry.Digest]deletionMark
	leases    map[string]lease
	answers   map[answerKey]claimedAnswer
	tokens    map[string]registry.Token
	sessions  map[string]registry.Session
	secrets   map[string][]byte
	agreed    registry.Configuration

	counters map[string]int64

	nodeTypes *Table[registry.Node]
	adverse   *Table[registry.AdverseEvidence]
}

var (
	_ registry.RepositoryRecords = (*DB)(nil)
	_ registry.Catalog           = (*DB)(nil)
	_ registry.Intents           = (*DB)(nil)
	_ registry.UploadStates      = (*DB)(nil)
	_ registry.Listing           = (*DB)(nil)
)

type (
	member struct {
		repository string
		digest     registry.Digest
	}
	tagKey  struct{ repository, tag string }
	headKey struct{ environment, model string }
	// recordKey is a record of a repository: a blob, or a manifest.
	recordKey struct {
		member
		manifest bool
	}
)

func (db *DB) now() time.Time {
	if db.Now == nil {
		return time.Now()
	}
	return db.Now()
}

// New is an empty database.
func New() *DB {
	return &DB{
		blobs:     make(map[member]int64),
		manifests: make(map[member]registry.Manifest),
		tags:      make(map[tagKey]registry.Digest),
		heads:     make(map[headKey]registry.Head),
		intents:   make(map[headKey]registry.Intent),
		recorded:  make(map[recordedKey]registry.Record),
		uploads:   make(map[string]registry.UploadState),
		ages:      make(map[recordKey]age),
		marked:    make(map[registry.Digest]deletionMark),
		leases:    make(map[string]lease),
		answers:   make(map[answerKey]claimedAnswer),
		tokens:    make(map[string]registry.Token),
		sessions:  make(map[string]registry.Session),
		secrets:   make(map[string][]byte),
		counters:  make(map[string]int64),
		nodeTypes: NewTable[registry.Node](),
		adverse:   NewTable[registry.AdverseEvidence](),
	}
}
