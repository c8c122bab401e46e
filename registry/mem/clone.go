package mem

import (
	"maps"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Clone returns a copy of the database, like a backup: writes to either are not in the
// other. What ends by itself, such as leases, stays behind.
func (db *DB) Clone() *DB {
	db.mu.RLock()
	defer db.mu.RUnlock()
	c := New()
	c.Now = db.Now
	c.blobs, c.manifests, c.tags = maps.Clone(db.blobs), maps.Clone(db.manifests), maps.Clone(db.tags)
	c.heads, c.intents = maps.Clone(db.heads), maps.Clone(db.intents)
	c.recorded = maps.Clone(db.recorded)
	c.ages, c.marked, c.recipes = maps.Clone(db.ages), maps.Clone(db.marked), maps.Clone(db.recipes)
	c.tokens, c.secrets = maps.Clone(db.tokens), maps.Clone(db.secrets)
	c.sessions = maps.Clone(db.sessions)
	c.history = append(c.history, db.history...)
	c.recorded = maps.Clone(db.recorded)
	c.agreed, c.counters = db.agreed, maps.Clone(db.counters)
	c.nodeTypes.documents = db.nodeTypes.clone()
	c.adverse.documents = db.adverse.clone()
	return c
}

// CutHistory deletes the rows after a sequence number and nothing else, as whoever can write
// to a database could.
func (db *DB) CutHistory(after int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.history = append(db.history[:0:0], db.history[:after]...)
}

// LoseHead deletes a head and nothing else, as whoever can write to a database could.
func (db *DB) LoseHead(environment, model string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.heads, headKey{environment, model})
}

// RestoreHead puts a head back and nothing else.
func (db *DB) RestoreHead(h history.Head) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.heads[headKey{h.Environment, h.Model}] = h
}

// Misrecord makes the list of when evidence came in name a row for a bundle, as whoever can
// write to a database could; row 0 takes the bundle from it.
func (db *DB) Misrecord(model string, bundle registry.Digest, row int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.recorded, recordedKey{model, bundle})
	if row > 0 {
		db.recorded[recordedKey{model, bundle}] = history.Record{Seq: row, Time: db.history[row-1].Time}
	}
}

// Clone is the blobs as they are now.
func (b *Blobs) Clone() *Blobs {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return &Blobs{bytes: maps.Clone(b.bytes)}
}

// Record looks up a key in a repository, as a collector does, and unmarks
// nothing.
func (db *DB) Record(repository string, key storage.GCRecordKey) (storage.GCRecord, bool) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	a, ok := db.ages[recordKey{member{repository, key.Digest}, key.Manifest}]
	return storage.GCRecord{Digest: key.Digest, Manifest: key.Manifest, Created: a.created, Marked: a.marked}, ok
}

// IsHeld reports whether any repository holds d.
func (db *DB) IsHeld(d registry.Digest) bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.holds(d)
}

// MarkedNow reports whether d is marked, with the removal of it that is under way, if
// one is, and disturbs nothing.
func (db *DB) MarkedNow(d registry.Digest) (removal storage.Removal, marked bool) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	c, ok := db.marked[d]
	return storage.Removal{ID: c.removal, Left: c.until.Sub(db.now())}, ok
}
