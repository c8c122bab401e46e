package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// A catalog of rows is like one that builds and promotions made: models with releases
// with engines, the evidence that prod asks for, a history that is chained.
const (
	releasesOfModel  = 10
	enginesOfRelease = 10
	evidenceOfEngine = 4  // signature, provenance, parity, summary
	eventsOfRelease  = 10 // publish, attach, promote
	rollbacks        = 10 // in all, far between
	rowsEnvironment  = "prod"
)

// rows is a catalog with so many engines. Every name and digest of it can be computed.
type rows struct{ engines int }

func (r rows) releases() int { return r.engines / enginesOfRelease }

func (r rows) models() int { return r.releases() / releasesOfModel }

func rowsModel(n int) string { return fmt.Sprintf("rows/model%06d", n) }

func rowsRepository(n int) string { return registry.Repository(rowsEnvironment, rowsModel(n)) }

// rowsDigest is the digest of one thing of a release.
func rowsDigest(release, thing int) registry.Digest {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(release))
	binary.BigEndian.PutUint64(b[8:], uint64(thing))
	return digest.FromBytes(b[:])
}

// The things of a release: 0 is its index, 1 to enginesOfRelease are its engines, and
// evidence comes behind.
func engineThing(engine int) int { return 1 + engine }

func evidenceThing(engine, nth int) int { return 1 + enginesOfRelease + engine*evidenceOfEngine + nth }

func rowsVersion(release int) string { return fmt.Sprintf("1.%d.0", release%releasesOfModel) }

func rowsRepositoryOf(release int) string { return rowsRepository(release / releasesOfModel) }

func rowsTime(seq int) time.Time { return time.Unix(1_800_000_000+int64(seq), 0).UTC() }

// fill copies the rows into an empty database, and lets the server look at them.
func (r rows) fill(tb testing.TB, db *DB) {
	tb.Helper()
	began := time.Now()
	r.copy(tb, db, "manifests", []string{"repository", "digest", "media_type", "size", "created", "pusher"}, r.manifests)
	r.copy(tb, db, "manifest_derived", []string{"repository", "digest", "artifact_type", "subject", "annotations"}, r.derived)
	r.copy(tb, db, "blobs", []string{"repository", "digest", "size", "created"}, r.blobs)
	r.copy(tb, db, "tags", []string{"repository", "tag", "digest"}, r.tags)
	r.copy(tb, db, "heads", []string{"environment", "model", "release", "version", "since", "hold"}, r.heads)
	r.copy(tb, db, "history", []string{"seq", "body"}, r.history)
	if _, err := db.pool.Exec(tb.Context(), "VACUUM ANALYZE"); err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%d engines of %d models copied in %v", r.engines, r.models(), time.Since(began).Round(time.Second))
}

// copy streams what each yields into a table.
func (r rows) copy(tb testing.TB, db *DB, table string, columns []string, each func(yield func(...any))) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	made := make(chan []any, 1000)
	go func() {
		defer close(made)
		each(func(row ...any) {
			select {
			case made <- row:
			case <-ctx.Done():
			}
		})
	}()
	_, err := db.pool.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		return <-made, nil
	}))
	if err != nil {
		tb.Fatalf("copy into %s: %v", table, err)
	}
}

func (r rows) manifests(yield func(...any)) {
	for release := range r.releases() {
		for thing := range evidenceThing(enginesOfRelease, 0) {
			yield(rowsRepositoryOf(release), string(rowsDigest(release, thing)), "application/vnd.oci.image.manifest.v1+json", int64(1000), rowsTime(0), "")
		}
	}
}

func (r rows) derived(yield func(...any)) {
	for release := range r.releases() {
		repository := rowsRepositoryOf(release)
		for thing := range evidenceThing(0, 0) {
			yield(repository, string(rowsDigest(release, thing)), "application/vnd.mlpromote.engine.v1", "", `{"org.opencontainers.image.version":"1.0.0"}`)
		}
		for engine := range enginesOfRelease {
			for nth := range evidenceOfEngine {
				yield(repository, string(rowsDigest(release, evidenceThing(engine, nth))), "application/vnd.dev.sigstore.bundle.v0.3+json",
					string(rowsDigest(release, engineThing(engine))), `{"dev.sigstore.bundle.predicateType":"https://mlpromote.dev/parity/v1"}`)
			}
		}
	}
}

func (r rows) blobs(yield func(...any)) {
	for release := range r.releases() {
		for engine := range enginesOfRelease {
			yield(rowsRepositoryOf(release), string(rowsDigest(release, -1-engine)), int64(1<<20), rowsTime(0))
		}
	}
}

func (r rows) tags(yield func(...any)) {
	for release := range r.releases() {
		yield(rowsRepositoryOf(release), rowsVersion(release), string(rowsDigest(release, 0)))
		if release%releasesOfModel == releasesOfModel-1 {
			yield(rowsRepositoryOf(release), artifact.HeadTag, string(rowsDigest(release, 0)))
		}
	}
}

func (r rows) heads(yield func(...any)) {
	for model := range r.models() {
		last := (model+1)*releasesOfModel - 1
		for _, environment := range []string{rowsEnvironment, "staging"} {
			yield(environment, rowsModel(model), string(rowsDigest(last, 0)), rowsVersion(last), rowsTime(last), "")
		}
	}
}

func (r rows) history(yield func(...any)) {
	var last history.Event
	for release := range r.releases() {
		for nth := range eventsOfRelease {
			event := history.Event{
				Time: rowsTime(int(last.Seq)), Kind: history.EventAttach, Environment: "staging", Model: rowsModel(release / releasesOfModel),
				Version: rowsVersion(release), Release: rowsDigest(release, 0), Subject: rowsDigest(release, engineThing(nth)),
				Evidence: []registry.Digest{rowsDigest(release, evidenceThing(nth, 0))}, Signer: "verifier",
			}
			switch nth {
			case 0:
				event.Kind, event.Subject = history.EventPublish, ""
			case eventsOfRelease - 1:
				if release > r.releases()/2 {
					break // what is in prod is long ago, and much has happened since
				}
				event.Kind, event.Environment, event.Subject = history.EventPromote, rowsEnvironment, ""
			}
			if nth == eventsOfRelease-1 && release%(r.releases()/rollbacks) == 0 {
				event.Kind = history.EventRollback
			}
			chained, err := event.Chain(last)
			if err != nil {
				panic(err)
			}
			body, err := registry.CanonicalJSON(chained)
			if err != nil {
				panic(err)
			}
			yield(chained.Seq, string(body))
			last = chained
		}
	}
}

// question is something that is asked of a catalog of rows, about a release.
type question struct {
	name string
	ask  func(ctx context.Context, db *DB, r rows, release int) error
}

// queries is the number of queries that answer the question. If rows can be large, the first
// query asks for their sizes.
func (q question) queries() int {
	if q.name == "referrers" {
		return 2
	}
	return 1
}

// questions are those of resolve and listings.
func questions() []question {
	head := func(kind history.EventKind, environment string, model bool) func(context.Context, *DB, rows, int) error {
		return func(ctx context.Context, db *DB, _ rows, release int) error {
			q := history.HistoryQuery{Kind: kind, Environment: environment, Descending: true}
			if model {
				q.Model = rowsModel(release / releasesOfModel)
			}
			return firstPage(db.History(ctx, q))
		}
	}
	return []question{
		{"head", func(ctx context.Context, db *DB, _ rows, release int) error {
			_, err := db.Head(ctx, rowsEnvironment, rowsModel(release/releasesOfModel))
			return err
		}},
		{"last event", func(ctx context.Context, db *DB, _ rows, release int) error {
			_, err := db.LastEvent(ctx, rowsEnvironment, rowsModel(release/releasesOfModel))
			return err
		}},
		{"tag", func(ctx context.Context, db *DB, _ rows, release int) error {
			_, err := db.Tag(ctx, rowsRepositoryOf(release), rowsVersion(release))
			return err
		}},
		{"manifest", func(ctx context.Context, db *DB, _ rows, release int) error {
			_, err := db.Manifest(ctx, rowsRepositoryOf(release), rowsDigest(release, engineThing(release%enginesOfRelease)))
			return err
		}},
		{"referrers", func(ctx context.Context, db *DB, _ rows, release int) error {
			found, err := db.Referrers(ctx, rowsRepositoryOf(release), rowsDigest(release, engineThing(release%enginesOfRelease)), "", "")
			if err == nil && len(found) != evidenceOfEngine {
				return fmt.Errorf("%d referrers, want %d", len(found), evidenceOfEngine)
			}
			return err
		}},
		{"blob", func(ctx context.Context, db *DB, _ rows, release int) error {
			_, err := db.Blob(ctx, rowsRepositoryOf(release), rowsDigest(release, -1))
			return err
		}},
		{"tags of a repository", func(ctx context.Context, db *DB, _ rows, release int) error {
			tags, err := db.ListTags(ctx, rowsRepositoryOf(release), "", pageSize)
			if err == nil && len(tags) != releasesOfModel+1 {
				return fmt.Errorf("%d tags, want %d", len(tags), releasesOfModel+1)
			}
			return err
		}},
		{"page of repositories", func(ctx context.Context, db *DB, _ rows, _ int) error {
			names, err := db.ListRepositories(ctx, rowsEnvironment+"/", "", 3)
			if err == nil && len(names) != 3 {
				return fmt.Errorf("repositories %q, want 3", names)
			}
			return err
		}},
		{"heads of a model", func(ctx context.Context, db *DB, _ rows, release int) error {
			heads, err := db.Heads(ctx, "", rowsModel(release/releasesOfModel))
			if err == nil && len(heads) != 2 {
				return fmt.Errorf("%d heads, want 2", len(heads))
			}
			return err
		}},
		{"page of all manifests", func(ctx context.Context, db *DB, _ rows, release int) error {
			page, err := db.manifestPage(ctx, dbsqlc.ManifestPageParams{
				Repository: rowsRepositoryOf(release), Digest: string(rowsDigest(release, 0)), PageSize: pageSize,
			})
			if err == nil && len(page) == 0 {
				return errors.New("nothing is there")
			}
			return err
		}},
		{"page of history", head("", "", false)},
		{"page of history of a model", head("", "staging", true)},
		{"page of history of a model anywhere", head("", "", true)},
		{"page of history of an environment", head("", rowsEnvironment, false)},
		{"page of history of a kind", head(history.EventPromote, "", false)},
		{"page of history of a rare kind", head(history.EventRollback, rowsEnvironment, false)},
		{"page of history of an environment and kind", head(history.EventPublish, "staging", false)},
		{"page of history of a model and kind", head(history.EventPublish, "staging", true)},
		{"history of an engine", func(ctx context.Context, db *DB, _ rows, release int) error {
			return firstPage(db.History(ctx, history.HistoryQuery{Subject: rowsDigest(release, engineThing(1))}))
		}},
		{"page of history after an event", func(ctx context.Context, db *DB, r rows, release int) error {
			return firstPage(db.History(ctx, history.HistoryQuery{After: int64(release * eventsOfRelease / 2)}))
		}},
	}
}

// firstPage reads a page, which must have something.
func firstPage[T any](seq func(yield func(T, error) bool)) error {
	n := 0
	for _, err := range seq {
		if err != nil {
			return err
		}
		if n++; n == pageSize {
			break
		}
	}
	if n == 0 {
		return errors.New("nothing is there")
	}
	return nil
}
