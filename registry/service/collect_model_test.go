package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// place is where something is: a manifest or blob of a repository.
type place struct {
	repository string
	key        storage.GCRecordKey
}

// yard is a registry that clients use as they like while it is collected, with a diary from
// which a simple rule can tell what must be there.
type yard struct {
	t         *rapid.T
	db        *mem.DB
	blobs     *mem.Blobs
	spared    storage.Blobs
	now       time.Time
	asked     map[place]time.Time // when a client was last told that it is there
	came      map[place]time.Time
	documents map[registry.Digest][]byte
	heads     map[string][]registry.Digest // by environment, one behind the other
	recorded  []place
}

const (
	yardGrace = 24 * time.Hour
	yardHeads = 2
)

func newYard(t *rapid.T) *yard {
	y := &yard{t: t, db: mem.New(), blobs: mem.NewBlobs(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	y.db.Now = func() time.Time { return y.now }
	y.spared = gc.SafeStore{Garbage: y.db, Remover: y.blobs}.Blobs(y.blobs)
	y.asked, y.came = make(map[place]time.Time), make(map[place]time.Time)
	y.documents, y.heads = make(map[registry.Digest][]byte), make(map[string][]registry.Digest)
	return y
}

func (y *yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) repository() string {
	return rapid.SampledFrom([]string{"staging/m", "prod/m", "staging/m/sources", "staging/n"}).Draw(y.t, "repository")
}

// holdings is what there is, read as a collector does, which disturbs nothing.
func (y *yard) holdings(repository string) []storage.GCRecord {
	held, err := y.db.Records(y.t.Context(), repository)
	y.must(err)
	return held
}

// ask is what a client does before it relies on something.
func (y *yard) ask(at place) bool {
	var err error
	if at.key.Manifest {
		_, err = y.db.Manifest(y.t.Context(), at.repository, at.key.Digest)
	} else {
		_, err = y.db.Blob(y.t.Context(), at.repository, at.key.Digest)
	}
	if registry.HasCode(err, registry.CodeNotFound) {
		return false
	}
	y.must(err)
	y.asked[at] = y.now
	return true
}

// note writes down that something was put. What was there keeps the time at which it came.
func (y *yard) note(at place, isNew bool) {
	y.asked[at] = y.now
	if isNew {
		y.came[at] = y.now
	}
}

func (y *yard) has(at place) bool {
	return slices.ContainsFunc(y.holdings(at.repository), func(h storage.GCRecord) bool { return h.Key() == at.key })
}

func (y *yard) put(content []byte) registry.Digest {
	d := digest.FromBytes(content)
	y.must(y.spared.Put(y.t.Context(), d, int64(len(content)), bytes.NewReader(content)))
	return d
}

func (y *yard) pushBlob() {
	content := fmt.Appendf(nil, "blob %d", rapid.IntRange(0, 5).Draw(y.t, "content"))
	at := place{y.repository(), storage.GCRecordKey{Digest: digest.FromBytes(content)}}
	if rapid.Bool().Draw(y.t, "looks first") && y.ask(at) {
		return
	}
	isNew := !y.has(at)
	y.must(y.db.AddBlob(y.t.Context(), at.repository, y.put(content), int64(len(content))))
	y.note(at, isNew)
}

func (y *yard) mount() {
	from, ok := y.draw(y.repository(), false)
	to := place{y.repository(), from.key}
	if !ok || !y.ask(from) {
		return
	}
	isNew := !y.has(to)
	y.must(y.db.AddBlob(y.t.Context(), to.repository, to.key.Digest, 6))
	y.note(to, isNew)
}

// draw picks something that a repository holds.
func (y *yard) draw(repository string, manifest bool) (place, bool) {
	var all []place
	for _, h := range y.holdings(repository) {
		if h.Manifest == manifest {
			all = append(all, place{repository, h.Key()})
		}
	}
	if len(all) == 0 {
		return place{}, false
	}
	return rapid.SampledFrom(all).Draw(y.t, "held"), true
}

// pushManifest makes a document of what a client was told to be there.
func (y *yard) pushManifest() {
	repository := y.repository()
	document := map[string]any{"n": rapid.IntRange(0, 2).Draw(y.t, "n")}
	var parts []map[string]any
	for range rapid.IntRange(0, 3).Draw(y.t, "parts") {
		if part, ok := y.draw(repository, rapid.Bool().Draw(y.t, "of manifests")); ok && y.ask(part) {
			parts = append(parts, map[string]any{"digest": part.key.Digest})
		}
	}
	document["parts"] = parts
	if subject, ok := y.draw(repository, true); ok && rapid.Bool().Draw(y.t, "refers") {
		document["subject"] = map[string]any{"digest": subject.key.Digest} // need not be there
	}
	if sources, ok := y.draw("staging/m/sources", true); ok &&
		repository != "staging/m/sources" && rapid.Bool().Draw(y.t, "has sources") && y.ask(sources) {
		document["annotations"] = map[string]any{"made from": sources.key.Digest}
	}
	raw, err := json.Marshal(document)
	y.must(err)
	at := place{repository, storage.GCRecordKey{Digest: y.put(raw), Manifest: true}}
	isNew := !y.has(at)
	y.must(y.db.PutManifest(y.t.Context(), repository, storage.Manifest{Digest: at.key.Digest, Size: int64(len(raw))}))
	y.documents[at.key.Digest] = raw
	y.note(at, isNew)
}

func (y *yard) tag() {
	if at, ok := y.draw(y.repository(), true); ok && y.ask(at) {
		y.must(y.db.SetTag(y.t.Context(), at.repository, fmt.Sprint("t", rapid.IntRange(0, 1).Draw(y.t, "tag")), at.key.Digest))
	}
}

func (y *yard) untag() {
	repository := y.repository()
	for _, h := range y.holdings(repository) {
		for _, tag := range h.Tags {
			y.must(y.db.DeleteTag(y.t.Context(), repository, tag))
		}
	}
}

func (y *yard) remove() {
	if at, ok := y.draw(y.repository(), true); ok {
		y.must(y.db.DeleteManifest(y.t.Context(), at.repository, at.key.Digest))
		delete(y.asked, at)
		delete(y.came, at)
	}
}

// release moves a head to what was looked at.
func (y *yard) release() {
	environment := rapid.SampledFrom([]string{"staging", "prod"}).Draw(y.t, "environment")
	at, ok := y.draw(environment+"/m", true)
	if !ok || !y.ask(at) {
		return
	}
	var before registry.Digest
	if n := len(y.heads[environment]); n > 0 {
		before = y.heads[environment][n-1]
	}
	_, err := y.db.Apply(y.t.Context(), storage.Change{
		Event:         history.Event{Time: y.now, Kind: history.EventPromote, Environment: environment, Model: "m", Release: at.key.Digest},
		DecisionBasis: registrytest.HeadAlone(environment, "m", before),
		Move:          &storage.HeadMove{},
	})
	y.must(err)
	y.heads[environment] = append(y.heads[environment], at.key.Digest)
}

// attach writes down in the history that something is evidence.
func (y *yard) attach() {
	at, ok := y.draw("staging/m", true)
	if !ok || !y.ask(at) {
		return
	}
	_, err := y.db.Apply(y.t.Context(), storage.Change{
		Event: history.Event{Time: y.now, Kind: history.EventAttach, Environment: "staging", Model: "m", Evidence: []registry.Digest{at.key.Digest}}})
	y.must(err)
	y.recorded = append(y.recorded, place{"staging/m", at.key}, place{"prod/m", at.key}, place{"staging/m/sources", at.key})
}

func (y *yard) wait() {
	y.now = y.now.Add(rapid.SampledFrom([]time.Duration{time.Hour, 13 * time.Hour, 25 * time.Hour, 1000 * time.Hour}).Draw(y.t, "time"))
}

func (y *yard) collector(edits ...func(*gc.Config)) *gc.Collector {
	config := gc.Config{
		Environments: policy.Environments{List: []policy.Environment{{Name: "staging"}, {Name: "prod", From: "staging"}}},
		Store:        y.db, Catalog: y.db, Intents: y.db, Blobs: y.blobs, Remover: y.blobs, Garbage: y.db, Owner: registrytest.Owned{}, Lock: registrytest.Owned{},
		Retention: gc.Retention{Grace: yardGrace, Heads: yardHeads}, Clock: y.db,
	}
	for _, edit := range edits {
		edit(&config)
	}
	c, err := gc.New(config)
	y.must(err)
	return c
}

// collect collects, and wants everything to be there that must.
func (y *yard) collect(edits ...func(*gc.Config)) {
	c := y.collector(edits...)
	must := y.needed(y.roots(!c.Alone))
	did, err := c.Collect(y.t.Context())
	y.must(err)
	if len(did.SkippedRepositories) > 0 {
		y.t.Fatalf("left alone: %v", did.SkippedRepositories)
	}
	for at, why := range must {
		if !y.has(at) {
			y.t.Fatalf("collected %v, which is %s", at, why)
		}
	}
	y.whole()
}

// whole wants the bytes of all that is held to be there.
func (y *yard) whole() {
	for _, repository := range y.repositories() {
		for _, h := range y.holdings(repository) {
			blob, _, err := y.blobs.Open(y.t.Context(), h.Digest)
			y.must(err)
			content, err := io.ReadAll(blob)
			y.must(err)
			if digest.FromBytes(content) != h.Digest {
				y.t.Fatalf("%s in %s was changed", h.Digest, repository)
			}
		}
	}
}

func (y *yard) repositories() []string {
	names, err := y.db.Repositories(y.t.Context())
	y.must(err)
	return names
}

// roots is all that must be there by itself, with reasons. Times count where they should.
func (y *yard) roots(times bool) map[place]string {
	roots := make(map[place]string)
	for _, repository := range y.repositories() {
		for _, h := range y.holdings(repository) {
			at := place{repository, h.Key()}
			switch {
			case len(h.Tags) > 0:
				roots[at] = "tagged"
			case times && y.now.Sub(y.came[at]) < yardGrace:
				roots[at] = "young"
			case times && y.now.Sub(y.asked[at]) < yardGrace && !slices.Contains(y.recorded, at): // what stays anyway says nothing about its subject
				roots[at] = "asked for"
			}
		}
	}
	var heads []registry.Digest
	for environment, all := range y.heads {
		heads = append(heads, all[len(all)-1])
		for i, earlier := len(all)-2, []registry.Digest(nil); environment == "prod" && i >= 0 && len(earlier) < yardHeads; i-- {
			if all[i] != all[len(all)-1] && !slices.Contains(earlier, all[i]) {
				earlier = append(earlier, all[i])
				heads = append(heads, all[i])
			}
		}
	}
	for _, d := range heads {
		for _, repository := range []string{"staging/m", "prod/m", "staging/m/sources"} {
			roots[place{repository, storage.GCRecordKey{Digest: d, Manifest: true}}] = "a head"
		}
	}
	return roots
}

// needed spreads over all that is held what is needed, until it spreads no further. Roots
// that are not held any more, since a client deleted them, are none.
func (y *yard) needed(roots map[place]string) map[place]string {
	needed := make(map[place]string)
	var all []place
	for _, repository := range y.repositories() {
		for _, h := range y.holdings(repository) {
			at := place{repository, h.Key()}
			all = append(all, at)
			if why, ok := roots[at]; ok {
				needed[at] = why
			}
		}
	}
	mentions := func(whole, part place) bool { // by text: no digest is in a document by chance
		body, _, _ := strings.Cut(string(y.documents[whole.key.Digest]), `"subject"`) // which comes last
		return whole.key.Manifest && strings.Contains(body, string(part.key.Digest))
	}
	subject := func(whole place) registry.Digest {
		var document struct {
			Subject struct{ Digest registry.Digest }
		}
		if whole.key.Manifest {
			y.must(json.Unmarshal(y.documents[whole.key.Digest], &document))
		}
		return document.Subject.Digest
	}
	light := make(map[place]bool) // needed, but not for their subjects' sake
	for _, at := range y.recorded {
		if slices.Contains(all, at) && needed[at] == "" {
			light[at] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, whole := range all {
			for _, part := range all {
				together := part.repository == whole.repository
				within := together && mentions(whole, part)
				source := part.repository == "staging/m/sources" && strings.HasSuffix(whole.repository, "/m") && mentions(whole, part)
				about := together && part.key.Manifest && whole.key.Manifest && subject(part) == whole.key.Digest
				if needed[part] == "" && (source && (needed[whole] != "" || light[whole]) ||
					needed[whole] != "" && (within || about || together && subject(whole) == part.key.Digest)) {
					needed[part], grown = "needed by "+string(whole.key.Digest), true
				}
				if light[whole] && needed[part] == "" && !light[part] && (within || about) {
					light[part], grown = true, true
				}
			}
		}
	}
	for at := range light {
		if needed[at] == "" {
			needed[at] = "named by history"
		}
	}
	return needed
}

// Whatever clients do and whenever it is collected, nothing goes that a simple rule wants
// to be there. When all is quiet, nothing is left that it does not want.
func TestCollectModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		y := newYard(t)
		actions := map[string]func(){
			"push blob": y.pushBlob, "push manifest": y.pushManifest, "push another": y.pushManifest, "mount": y.mount, "tag": y.tag, "untag": y.untag, "delete": y.remove,
			"release": y.release, "attach": y.attach, "wait": y.wait, "collect": func() { y.collect() }, "collect again": func() { y.wait(); y.collect() },
		}
		names := make([]string, 0, len(actions))
		for name := range actions {
			names = append(names, name)
		}
		slices.Sort(names)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			actions[rapid.SampledFrom(names).Draw(t, "action")]()
		}
		y.collect(undisturbed)
		y.quiet()
	})
}

// undisturbed waits for nobody.
func undisturbed(c *gc.Config) { c.Alone, c.Retention.Grace = true, 0 }

// why is the collector's own reason for keeping something.
func (y *yard) why(at place) string {
	plan, err := y.collector(undisturbed).Plan(y.t.Context())
	y.must(err)
	for _, r := range plan.Repositories {
		for _, f := range r.Outcomes {
			if at == (place{r.Repository, f.Key()}) {
				return f.KeptBecause
			}
		}
	}
	return "not there"
}

// quiet wants nothing to be there that is not needed.
func (y *yard) quiet() {
	needed := y.needed(y.roots(false))
	bytes := make(map[registry.Digest]bool)
	for _, repository := range y.repositories() {
		for _, h := range y.holdings(repository) {
			bytes[h.Digest] = true
			if needed[place{repository, h.Key()}] == "" {
				y.t.Fatalf("%s is left in %s, and nothing needs it: %s", h.Digest, repository, y.why(place{repository, h.Key()}))
			}
		}
	}
	for d, err := range y.blobs.Digests(y.t.Context()) {
		y.must(err)
		if !bytes[d] {
			y.t.Fatalf("the bytes of %s are left, and no repository holds them", d)
		}
	}
}
