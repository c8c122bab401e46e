//go:build cgo

package endtoend

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// told is what the clients of a storm were told. Its methods may be called at the same time.
type told struct {
	mu       sync.Mutex
	tags     map[string]int // number of the content by its tag
	kept     map[place]artifact.Release
	moves    []move     // that no check has seen
	evidence []attached // all there ever was
	lifted   map[registry.Digest]bool
	reasons  int
	done     map[string][2]int // how often by action: acknowledged, refused
}

// place is a release in an environment.
type place struct {
	environment string
	release     registry.Digest
}

// attached is evidence that was attached.
type attached struct {
	api.Attachment
	stored    registry.Digest // manifest of the bundle
	predicate string
}

// move is a change of a head.
type move struct {
	kind        history.EventKind
	environment string
	release     registry.Digest   // empty: any
	at          time.Time         // the zero time: any
	reason      string            // that no other change has
	evidence    []registry.Digest // that came in with it
}

// is reports whether an event tells of the move.
func (m move) is(e history.Event) bool {
	return e.Kind == m.kind && e.Environment == m.environment && (m.release == "" || m.release == e.Release) &&
		(m.at.IsZero() || m.at.Equal(e.Time)) && m.reason == e.Reason &&
		!slices.ContainsFunc(m.evidence, func(d registry.Digest) bool { return !slices.Contains(e.Evidence, d) })
}

func newTold() *told {
	return &told{
		tags: make(map[string]int), kept: make(map[place]artifact.Release),
		lifted: make(map[registry.Digest]bool), done: make(map[string][2]int),
	}
}

// count counts an action by how it ended.
func (t *told) count(action string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.done[action]
	if err == nil {
		n[0]++
	} else {
		n[1]++
	}
	t.done[action] = n
}

// summary says how often each action was acknowledged.
func (t *told) summary() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.done)) {
		all = append(all, fmt.Sprintf("%s %d of %d", name, t.done[name][0], t.done[name][0]+t.done[name][1]))
	}
	return strings.Join(all, ", ")
}

func (t *told) tag(tag string, content int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tags[tag] = content
}

func (t *told) keep(environment string, r artifact.Release) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept[place{environment, r.Digest}] = r
}

func (t *told) move(m move) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moves = append(t.moves, m)
}

func (t *told) attach(e attached) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.evidence = append(t.evidence, e)
}

// attached reports whether such evidence about a subject was attached.
func (t *told) attached(environment string, subject registry.Digest, predicate string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.evidence, func(e attached) bool {
		return e.Environment == environment && e.Subject == subject && e.predicate == predicate
	})
}

// lift notes quarantines that somebody tries to end.
func (t *told) lift(bundles []registry.Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range bundles {
		t.lifted[d] = true
	}
}

// quarantines are those that nobody tried to end.
func (t *told) quarantines() (standing []attached) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.evidence {
		if e.predicate == evidence.PredicateQuarantine && !t.lifted[e.stored] {
			standing = append(standing, e)
		}
	}
	return standing
}

// quarantined reports whether an engine is in one of them.
func (t *told) quarantined(engine registry.Digest) bool {
	return slices.ContainsFunc(t.quarantines(), func(e attached) bool { return e.Subject == engine })
}

// reason is one that nobody else gives.
func (t *told) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reasons++
	return fmt.Sprintf("reason %d", t.reasons)
}

// forget forgets some of what is tagged in staging, but for the head there, and gives where
// it is, for its tags to be deleted.
func (t *told) forget(head registry.Digest, some func() bool) []string {
	var paths []string
	for _, tag := range slices.Sorted(maps.Keys(t.tags)) {
		if some() {
			delete(t.tags, tag)
			paths = append(paths, stormRepository+"/manifests/"+tag)
		}
	}
	for _, p := range t.places() {
		if p.environment == "staging" && p.release != head && some() {
			paths = append(paths, "/v2/staging/"+registrytest.Model+"/manifests/"+t.kept[p].Tag())
			delete(t.kept, p)
		}
	}
	return paths
}

// releases are the tags of releases that must be in an environment.
func (t *told) releases(environment string) (tags []string) {
	for _, p := range t.places() {
		if p.environment == environment {
			tags = append(tags, t.kept[p].Tag())
		}
	}
	return tags
}

// places are those of releases that must be there, in an order that is always the same.
func (t *told) places() []place {
	return slices.SortedFunc(maps.Keys(t.kept), func(a, b place) int {
		return strings.Compare(a.environment+string(a.release), b.environment+string(b.release))
	})
}
