package mem

import (
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// DB is every port that a database fills, over the same maps, as one database is. Make one
// with [New].
type DB struct {
	Now storage.Clock // of the catalog; nil means time.Now; to be set before use

	mu        sync.RWMutex
	blobs     map[member]int64 // sizes
	manifests map[member]storage.Manifest
	tags      map[tagKey]registry.Digest
	heads     map[headKey]history.Head
	intents   map[headKey]history.Intent
	recorded  map[recordedKey]history.Record
	uploads   map[string]storage.UploadState
	history   []history.Event
	ages      map[recordKey]age
	marked    map[registry.Digest]deletionMark
	recipes   map[registry.Digest]storage.Recipe
	leases    map[string]lease
	answers   map[answerKey]claimedAnswer
	tokens    map[string]storage.Token
	sessions  map[string]storage.Session
	secrets   map[string][]byte
	agreed    history.Configuration

	counters map[string]int64

	nodeTypes *Table[artifact.Node]
	adverse   *Table[evidence.AdverseEvidence]
}

var (
	_ storage.RepositoryRecords = (*DB)(nil)
	_ storage.Catalog           = (*DB)(nil)
	_ storage.Intents           = (*DB)(nil)
	_ storage.UploadStates      = (*DB)(nil)
	_ storage.Listing           = (*DB)(nil)
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
		manifests: make(map[member]storage.Manifest),
		tags:      make(map[tagKey]registry.Digest),
		recipes:   make(map[registry.Digest]storage.Recipe),
		heads:     make(map[headKey]history.Head),
		intents:   make(map[headKey]history.Intent),
		recorded:  make(map[recordedKey]history.Record),
		uploads:   make(map[string]storage.UploadState),
		ages:      make(map[recordKey]age),
		marked:    make(map[registry.Digest]deletionMark),
		leases:    make(map[string]lease),
		answers:   make(map[answerKey]claimedAnswer),
		tokens:    make(map[string]storage.Token),
		sessions:  make(map[string]storage.Session),
		secrets:   make(map[string][]byte),
		counters:  make(map[string]int64),
		nodeTypes: NewTable[artifact.Node](),
		adverse:   NewTable[evidence.AdverseEvidence](),
	}
}

// deletionMark is since when no repository holds some bytes, and the removal of them that is
// under way.
type deletionMark struct {
	at      time.Time
	removal string // empty: none is
	until   time.Time
}

type recordedKey struct {
	model  string
	bundle registry.Digest
}

type answerKey struct{ principal, key string }

type claimedAnswer struct {
	storage.KeyClaim
	until  time.Time
	answer storage.KeptAnswer // without a status: the claimant is at work
}

type lease struct {
	holder string
	until  time.Time
}

// age is when a record came, and since when it is marked.
type age struct{ created, marked time.Time }

// put notes that a record was put, once more perhaps. The caller holds the lock.
func (db *DB) put(key recordKey) {
	if _, ok := db.ages[key]; !ok {
		db.ages[key] = age{created: micros(db.now())}
	}
	db.unmark(key)
}

// unmark forgets that a record is marked. The caller holds the lock.
func (db *DB) unmark(key recordKey) {
	db.ages[key] = age{created: db.ages[key].created}
}

// micros is a time as databases keep it.
func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// notBefore is a time, or now where that is past.
func (db *DB) notBefore(at time.Time) time.Time {
	if now := db.now(); now.After(at) {
		return micros(now)
	}
	return micros(at)
}
