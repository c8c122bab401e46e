//go:build cgo

package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// sampled is how much of the evidence of earlier rounds is read again after each; the claims
// of a release list all of it, and the end of a storm reads all.
const sampled = 5

// check wants all that was acknowledged, from both replicas.
func (s *storm) check() {
	s.t.Helper()
	s.readHistory()
	s.checkMoves()
	read := slices.Clone(s.told.evidence[s.read:])
	for range min(sampled, s.read) {
		read = append(read, s.told.evidence[s.random.IntN(s.read)])
	}
	s.read = len(s.told.evidence)
	s.atBoth(func(c *stormClient) {
		c.checkContents()
		c.checkHeads()
		c.checkReleases()
		c.checkBundles(read)
	})
}

// end wants all that there ever was, and what operators look at.
func (s *storm) end() {
	s.t.Helper()
	s.atBoth(func(c *stormClient) {
		c.checkBundles(s.told.evidence)
		whole, err := retried(c.s, func(ctx context.Context) ([]history.Event, error) {
			return c.registry.History(ctx, history.HistoryQuery{})
		})
		if err != nil || !slices.EqualFunc(whole, s.history, sameEvent) {
			s.errorf("the history has %d events, want the %d that it had, error %v", len(whole), len(s.history), err)
		}
	})
	if err := s.replicas[0].ShareKeys(); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range s.replicas {
		cmd := exec.CommandContext(s.t.Context(), r.Program, "history", "verify")
		cmd.Env = append(os.Environ(), r.ClientEnv()...)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.errorf("history verify: %v\n%s", err, out)
		}
	}
	s.t.Logf("acknowledged: %s; the history has %d events", s.told.summary(), len(s.history))
	if s.told.done["push"][0] == 0 || s.told.done["release"][0]+s.told.done["promote"][0]+s.told.done["rollback"][0] == 0 {
		s.t.Error("no push or no move of a head was acknowledged: the test tests nothing")
	}
}

// atBoth calls f for the clients of both replicas at the same time.
func (s *storm) atBoth(f func(c *stormClient)) {
	var both sync.WaitGroup
	for _, c := range s.clients {
		both.Go(func() { f(c) })
	}
	both.Wait()
}

// retried asks until there is an answer that asking again would not change, for a while.
func retried[T any](s *storm, ask func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), stormPatience)
	defer cancel()
	for {
		answer, err := ask(ctx)
		if err == nil || slices.Contains(finalCodes(), registry.CodeOf(err)) || ctx.Err() != nil {
			return answer, err
		}
		time.Sleep(20 * time.Millisecond) // the weather changes
	}
}

// finalCodes are those of errors that mean what they say, whatever the weather is.
func finalCodes() []registry.Code {
	return []registry.Code{
		registry.CodeNotFound, registry.CodeInvalid, registry.CodePolicy, registry.CodeTrust, registry.CodeDigest, registry.CodeNoEngine,
	}
}

func sameEvent(a, b history.Event) bool { return a.Hash == b.Hash }

// readHistory reads what happened since the last check, from both replicas, which must say
// the same, and lets each check the whole.
func (s *storm) readHistory() {
	s.t.Helper()
	var last history.Event
	if len(s.history) > 0 {
		last = s.history[len(s.history)-1]
	}
	var said [2][]history.Event
	s.atBoth(func(c *stormClient) {
		events, err := retried(s, func(ctx context.Context) ([]history.Event, error) {
			return c.registry.History(ctx, history.HistoryQuery{After: last.Seq})
		})
		if err != nil {
			s.errorf("history: %v", err)
		}
		said[slices.Index(s.clients, c)] = events
		c.verifyHistory()
	})
	if !slices.EqualFunc(said[0], said[1], sameEvent) {
		s.errorf("after row %d one replica says %v, the other %v", last.Seq, said[0], said[1])
	}
	for _, e := range said[0] {
		if err := e.VerifyChain(last); err != nil {
			s.errorf("%v", err)
		}
		last = e
	}
	s.history = append(s.history, said[0]...)
}

func (c *stormClient) verifyHistory() {
	_, err := retried(c.s, func(ctx context.Context) (struct{}, error) {
		v, err := c.registry.VerifyHistory(ctx)
		if err == nil && !v.Intact {
			err = registry.Errorf(registry.CodeTrust, "it is not intact: %+v", v)
		}
		return struct{}{}, err
	})
	faults, errFaults := retried(c.s, c.registry.HistoryFaults)
	if err != nil || errFaults != nil || len(faults) > 0 {
		c.s.errorf("history of %s: faults %v, errors %v, %v", c.url, faults, err, errFaults)
	}
}

// checkMoves wants every move and all evidence that was acknowledged since the last check in
// the history, and what was asked for once to be done once.
func (s *storm) checkMoves() {
	s.t.Helper()
	for _, m := range s.told.moves {
		if !slices.ContainsFunc(s.history, m.is) {
			s.errorf("the history lost %+v", m)
		}
	}
	s.told.moves = nil
	for _, e := range s.told.evidence[s.read:] {
		named := func(event history.Event) bool {
			return event.Kind == history.EventAttach && event.Environment == e.Environment && slices.Contains(event.Evidence, e.stored)
		}
		if !slices.ContainsFunc(s.history, named) {
			s.errorf("the history lost %s about %s in %s", e.predicate, e.Subject, e.Environment)
		}
	}
	given := make(map[string]int)
	for _, e := range s.history {
		if strings.HasPrefix(e.Reason, "reason ") {
			if given[e.Reason]++; given[e.Reason] == 2 {
				s.errorf("%s in row %d was done twice", e.Kind, e.Seq)
			}
		}
	}
}

// head is where the newest event that moved it put a head.
func (s *storm) head(environment string) (head registry.Digest) {
	for _, e := range s.history {
		switch e.Kind {
		case history.EventPublish, history.EventPromote, history.EventRollback:
			if e.Environment == environment {
				head = e.Release
			}
		}
	}
	return head
}

// checkContents wants what is tagged, byte by byte.
func (c *stormClient) checkContents() {
	for tag, n := range c.s.told.tags {
		blob := fmt.Sprint("content ", n)
		for path, want := range map[string]string{"/manifests/" + tag: stormManifest(n), "/blobs/" + digest.FromString(blob).String(): blob} {
			_, err := retried(c.s, func(ctx context.Context) (struct{}, error) {
				status, body := ask(ctx, http.MethodGet, c.url+stormRepository+path, "")
				switch {
				case status == http.StatusOK && body == want:
					return struct{}{}, nil
				case status == http.StatusOK || status == http.StatusNotFound:
					return struct{}{}, registry.Errorf(registry.CodeNotFound, "%d, %q, want %q", status, body, want)
				}
				return struct{}{}, registry.Errorf(registry.CodeUnavailable, "%d, %s", status, body)
			})
			if err != nil {
				c.s.errorf("%s of %s is lost: %v", path, c.url, err)
			}
		}
	}
}

// checkHeads wants both heads to be where the history put them, and nodes to be given no
// engine of another release and none in quarantine.
func (c *stormClient) checkHeads() {
	for _, environment := range []string{"staging", "prod"} {
		want := c.s.head(environment)
		heads, err := retried(c.s, func(ctx context.Context) ([]history.Head, error) {
			return c.registry.Heads(ctx, environment, registrytest.Model)
		})
		if err != nil || len(heads) != 1 || heads[0].Release != want {
			c.s.errorf("the head of %s at %s is %+v, want %s, error %v", environment, c.url, heads, want, err)
		}
		answer, err := retried(c.s, func(ctx context.Context) (api.Resolution, error) {
			return c.registry.Resolve(ctx, api.ResolveQuery{Environment: environment, Model: registrytest.Model, Node: registrytest.Node("v3")})
		})
		if err != nil && !registry.HasCode(err, registry.CodeNoEngine) || answer.Release != want {
			c.s.errorf("%s resolves in %s to %+v, want an engine of %s, error %v", c.url, environment, answer, want, err)
		}
		if answer.Engine != nil && environment == "prod" && c.s.told.quarantined(answer.Engine.Digest) {
			c.s.errorf("%s resolves to %s, which is in quarantine", c.url, answer.Engine.Digest)
		}
	}
}

// checkReleases wants every release that must be there, byte by byte, with all the evidence
// that was attached to it.
func (c *stormClient) checkReleases() {
	for _, p := range c.s.told.places() {
		r := c.s.told.kept[p]
		_, err := retried(c.s, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.store.Rehash(ctx, registry.Repository(p.environment, registrytest.Model), r)
		})
		if err != nil {
			c.s.errorf("release %s in %s of %s: %v", r.Version, p.environment, c.url, err)
			continue
		}
		claims, err := retried(c.s, func(ctx context.Context) ([]evidence.Claim, error) {
			claims, _, err := c.registry.Claims(ctx, p.environment, r)
			return claims, err
		})
		if err != nil {
			c.s.errorf("evidence for %s in %s of %s: %v", r.Version, p.environment, c.url, err)
		}
		listed := bundles(claims)
		for _, e := range c.s.told.evidence {
			if e.Environment == p.environment && e.Release == r.Digest && !slices.Contains(listed, e.stored) {
				c.s.errorf("%s for %s in %s of %s is not listed: %s", e.predicate, e.Subject, e.Environment, c.url, e.stored)
			}
		}
	}
}

// checkBundles wants evidence to be readable.
func (c *stormClient) checkBundles(all []attached) {
	for _, e := range all {
		got, err := retried(c.s, func(ctx context.Context) (evidence.Bundle, error) {
			return c.registry.Bundle(ctx, e.Environment, registrytest.Model, e.stored)
		})
		if err != nil || !bytes.Equal(got.Data, e.Bundle) {
			c.s.errorf("%s for %s in %s of %s is lost: %v", e.predicate, e.Subject, e.Environment, c.url, err)
		}
	}
}
