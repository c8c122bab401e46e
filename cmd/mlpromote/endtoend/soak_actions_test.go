//go:build cgo

package endtoend

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/signer"
)

// How many contents and releases come again and again, some while they are collected.
const (
	stormContents = 6
	stormReleases = 4
)

// stormPatience is how long a client waits for an action or an answer.
const stormPatience = 2 * time.Minute

// stormClient is a client of one replica.
type stormClient struct {
	s        *storm
	url      string
	registry *client.Client
	store    *oci.Store
	key      signer.Signer // for every role
}

func newStormClient(t *testing.T, s *storm, url string, key signer.Signer) *stormClient {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	store := oci.New(func(_ context.Context, repository string) (oci.Repository, error) {
		repo, err := remote.NewRepository(strings.TrimPrefix(url, "http://") + "/" + repository)
		if err != nil {
			return nil, err
		}
		repo.Client, repo.PlainHTTP = &http.Client{Transport: transfer.Transport(transport)}, true
		return transfer.New(repo, transfer.Options{}), nil
	}, oci.Options{})
	api, err := client.New(client.Config{URL: url, Content: store, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return &stormClient{s, url, api, store, key}
}

// action is what a client does. An error says that it was refused, or that there was no
// answer: what it asked for may be done or not.
type action struct {
	name string
	do   func(ctx context.Context, c *stormClient) error
}

// do does one action after the other.
func (c *stormClient) do(ctx context.Context, actions []action) {
	for _, a := range actions {
		ctx, cancel := context.WithTimeout(ctx, stormPatience)
		err := a.do(ctx, c)
		cancel()
		c.s.told.count(a.name, err)
	}
}

// draw takes actions from a deck that has each as often as the others.
func (s *storm) draw(n int) []action {
	var drawn []action
	for range n {
		if len(s.deck) == 0 {
			s.deck = s.newDeck()
			s.random.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
		}
		drawn, s.deck = append(drawn, s.deck[0]), s.deck[1:]
	}
	return drawn
}

func (s *storm) newDeck() []action {
	release, engine, fails := s.random.IntN(stormReleases), s.random.IntN(2), s.random.IntN(2) == 0
	promoted, reported := s.built(), s.built()
	return []action{
		{"release", func(ctx context.Context, c *stormClient) error { return c.release(ctx, release) }},
		{"promote", func(ctx context.Context, c *stormClient) error { return c.promote(ctx, promoted) }},
		{"rollback", func(ctx context.Context, c *stormClient) error { return c.rollback(ctx) }},
		{"report", func(ctx context.Context, c *stormClient) error { return c.report(ctx, reported, engine, fails) }},
		{"quarantine", func(ctx context.Context, c *stormClient) error { return c.quarantine(ctx, engine) }},
	}
}

// built is the tag of one of the releases that can be promoted; empty: the head is all there is.
func (s *storm) built() string {
	all := s.told.releases("staging")
	if len(all) == 0 {
		return ""
	}
	return all[s.random.IntN(len(all))]
}

// pushes are pushes of contents, some of which are just being collected.
func (s *storm) pushes(n int) []action {
	var all []action
	for range n {
		content := s.random.IntN(stormContents)
		all = append(all, action{"push", func(ctx context.Context, c *stormClient) error { return c.push(ctx, content) }})
	}
	return all
}

const stormRepository = "/v2/staging/storm"

// push pushes a content and a manifest that needs it, by a tag of its own.
func (c *stormClient) push(ctx context.Context, n int) error {
	blob, tag := fmt.Sprint("content ", n), fmt.Sprint("tag-", n)
	d := digest.FromString(blob).String()
	for _, step := range []struct{ method, path, body string }{
		{http.MethodPost, "/blobs/uploads/?digest=" + d, blob}, {http.MethodPut, "/manifests/" + tag, stormManifest(n)},
	} {
		if got, _ := ask(ctx, step.method, c.url+stormRepository+step.path, step.body); got != http.StatusCreated {
			return fmt.Errorf("%s %s: %d", step.method, step.path, got)
		}
	}
	c.s.told.tag(tag, n)
	return nil
}

func stormManifest(n int) string {
	blob := fmt.Sprint("content ", n)
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/x","config":{"mediaType":"application/x","digest":%q,"size":%d},"layers":[]}`, digest.FromString(blob), len(blob))
}

// forget takes tags away from some contents and releases, which are garbage from now on,
// whatever the answer is.
func (s *storm) forget() {
	s.t.Helper()
	for _, path := range s.told.forget(s.head("staging"), func() bool { return s.random.IntN(2) == 0 }) {
		_, _ = ask(s.t.Context(), http.MethodDelete, s.replicas[s.random.IntN(2)].URL+path, "")
	}
}

// ask gives the status of an answer, or 0 where none came, and its body.
func ask(ctx context.Context, method, url, body string) (int, string) {
	ctx, cancel := context.WithTimeout(ctx, stormPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	if method == http.MethodPut {
		request.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	}
	response, err := programtest.Fresh().Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(said)
}

// build is one of the releases.
func (c *stormClient) build(n int) registrytest.Build {
	engines := []artifact.Engine{registrytest.MakeEngine("v3", "fp32"), registrytest.MakeEngine("v3", "int8")}
	return registrytest.Build{Version: fmt.Sprintf("1.0.%d", n), Salt: fmt.Sprint("storm ", n), Engines: engines}
}

// release builds a release, publishes it, proves what is not proven yet, and promotes it.
func (c *stormClient) release(ctx context.Context, n int) error {
	d, err := c.build(n).TryStore(ctx, c.store)
	if err != nil {
		return err
	}
	head, err := c.registry.Publish(ctx, api.Publication{Model: registrytest.Model, Release: d})
	if err != nil {
		return err
	}
	c.s.told.move(move{kind: history.EventPublish, environment: "staging", release: d, at: head.Since})
	r, err := c.registry.Release(ctx, "staging", registrytest.Model, string(d))
	if err != nil {
		return err
	}
	c.s.told.keep("staging", r)
	if err := c.prove(ctx, r); err != nil {
		return err
	}
	return c.promote(ctx, r.Tag())
}

// prove attaches what prod asks for, as far as no client was told before that it is there.
func (c *stormClient) prove(ctx context.Context, r artifact.Release) error {
	for _, s := range r.Subjects() {
		if err := c.attachOnce(ctx, r, s.Digest, evidence.PredicateSign, struct{}{}); err != nil {
			return err
		}
	}
	for _, e := range r.Engines {
		for predicate, content := range map[string]any{
			evidence.PredicateProvenance: struct{}{},
			evidence.PredicateParity:     registrytest.Report(r, e, evidence.VerdictPass),
		} {
			if err := c.attachOnce(ctx, r, e.Digest, predicate, content); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *stormClient) attachOnce(ctx context.Context, r artifact.Release, subject registry.Digest, predicate string, content any) error {
	if c.s.told.attached("staging", subject, predicate) {
		return nil
	}
	statement, err := evidence.NewStatement(predicate, content, evidence.StatementSubject{Digest: evidence.NewDigestSet(subject)})
	if err != nil {
		return err
	}
	return c.attach(ctx, "staging", r.Digest, subject, predicate, statement)
}

// attach signs a statement and attaches it.
func (c *stormClient) attach(ctx context.Context, environment string, release, subject registry.Digest, predicate string, statement []byte) error {
	bundle, err := c.key.Sign(ctx, statement)
	if err != nil {
		return err
	}
	a := api.Attachment{Environment: environment, Model: registrytest.Model, Release: release, Subject: subject, Bundle: bundle}
	d, err := c.registry.Attach(ctx, a)
	if err == nil {
		c.s.told.attach(attached{a, d, predicate})
	}
	return err
}

// promote promotes a release that was built.
func (c *stormClient) promote(ctx context.Context, tag string) error {
	p, err := c.registry.Promote(ctx, api.PromoteRequest{Model: registrytest.Model, Ref: tag})
	if err != nil {
		return err
	}
	r, err := c.registry.Release(ctx, "prod", registrytest.Model, string(p.Release))
	if err == nil {
		c.s.told.keep("prod", r)
	}
	if !p.Unchanged {
		c.s.told.move(move{kind: history.EventPromote, environment: "prod", release: p.Release, evidence: p.VSA})
	}
	return err
}

// rollback goes back to the head before, and lets promotions go on.
func (c *stormClient) rollback(ctx context.Context) error {
	reason := c.s.told.reason()
	p, err := c.registry.Rollback(ctx, api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: reason})
	if err == nil {
		c.s.told.move(move{kind: history.EventRollback, environment: "prod", release: p.Release, reason: reason})
	}
	reason = c.s.told.reason()
	release := api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: reason}
	if held := c.registry.ReleaseHold(ctx, release); held == nil { // also that of one who got no answer
		c.s.told.move(move{kind: history.EventHoldRelease, environment: "prod", reason: reason})
	}
	return err
}

// report attaches a report that an engine passes, perhaps after one that it fails.
func (c *stormClient) report(ctx context.Context, tag string, engine int, fails bool) error {
	r, err := c.registry.Release(ctx, "staging", registrytest.Model, tag)
	if err != nil {
		return err
	}
	verdicts := []evidence.Verdict{evidence.VerdictPass}
	if fails {
		verdicts = []evidence.Verdict{evidence.VerdictFail, evidence.VerdictPass}
	}
	e := r.Engines[engine]
	for _, verdict := range verdicts {
		seen, err := c.registry.History(ctx, history.HistoryQuery{Model: registrytest.Model, Descending: true, Limit: 1})
		if err != nil {
			return err
		}
		report := registrytest.Report(r, e, verdict)
		report.History = evidence.NewDigestSet(seen[0].Hash)
		statement, err := evidence.NewStatement(evidence.PredicateParity, report, evidence.StatementSubject{Digest: evidence.NewDigestSet(e.Digest)})
		if err != nil {
			return err
		}
		if err := c.attach(ctx, "staging", r.Digest, e.Digest, evidence.PredicateParity, statement); err != nil {
			return err
		}
	}
	return nil
}

// quarantine ends every quarantine that clients know of, or puts an engine of the head of
// prod into one.
func (c *stormClient) quarantine(ctx context.Context, engine int) error {
	if standing := c.s.told.quarantines(); len(standing) > 0 {
		for _, q := range standing {
			if err := c.lift(ctx, q.Release, q.Subject, q.stored); err != nil {
				return err
			}
		}
		return nil
	}
	r, err := c.registry.Release(ctx, "prod", registrytest.Model, "")
	if err != nil {
		return err
	}
	claims, _, err := c.registry.Claims(ctx, "prod", r)
	if err != nil {
		return err
	}
	e := r.Engines[engine].Digest
	if unknown := bundles(evidence.Quarantines(r, claims, e)); len(unknown) > 0 { // of one who got no answer
		return c.lift(ctx, r.Digest, e, unknown...)
	}
	statement, err := evidence.NewQuarantine(evidence.StatementSubject{Digest: evidence.NewDigestSet(e)}, "it stormed", time.Now())
	if err != nil {
		return err
	}
	return c.attach(ctx, "prod", r.Digest, e, evidence.PredicateQuarantine, statement)
}

// lift ends quarantines of an engine.
func (c *stormClient) lift(ctx context.Context, release, engine registry.Digest, quarantines ...registry.Digest) error {
	about := evidence.StatementSubject{Digest: evidence.NewDigestSet(engine)}
	statement, err := evidence.NewQuarantineLift(about, "it calmed down", time.Now(), quarantines...)
	if err != nil {
		return err
	}
	c.s.told.lift(quarantines)
	return c.attach(ctx, "prod", release, engine, "a lift", statement)
}

// bundles are those of claims.
func bundles(claims []evidence.Claim) []registry.Digest {
	var all []registry.Digest
	for _, claim := range claims {
		all = append(all, claim.Bundle)
	}
	return all
}
