package s3_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// The example of docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html.
func TestPresign(t *testing.T) {
	t.Parallel()
	u := url.URL{Scheme: "https", Host: "examplebucket.s3.amazonaws.com", Path: "/test.txt"}
	who := credentials.Value{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	got := s3.Presign(http.MethodGet, u, who, "us-east-1", at, 86400)
	const want = "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request" +
		"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", &got, want)
	}
}

// The store refuses a deletion whose permit has expired by the store's clock.
func TestLateDeletion(t *testing.T) {
	t.Parallel()
	b := open(t, shared, newPrefix(t))
	d := digest.FromString("kept")
	must(t, b.Put(t.Context(), d, 4, strings.NewReader("kept")))
	now, err := b.Time(t.Context())
	must(t, err)
	if away := time.Since(now).Abs(); away > time.Minute {
		t.Errorf("the store's time differs from this machine's by %v, want less than a minute", away)
	}
	wantCode(t, b.PermitAt(now.Add(-storage.PermitTime-2*time.Second)).Delete(t.Context(), d), registry.CodeUnavailable)
	wantBlob(t, b, d, []byte("kept"))
	must(t, b.PermitAt(now).Delete(t.Context(), d))
	wantNoBlob(t, b, d)
}

// answer is the part of a response that a proxy changes.
type answer struct {
	header http.Header
	status *int
}

// behind opens a bucket through a proxy that changes responses.
func behind(t *testing.T, prefix string, change func(*http.Request, answer)) *s3.Bucket {
	t.Helper()
	target, err := url.Parse(shared.Endpoint)
	must(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			change(r.Request, answer{r.Header, &r.StatusCode})
			return nil
		},
	})
	t.Cleanup(proxy.Close)
	config, err := s3.ParseURL(shared.URL(prefix))
	must(t, err)
	config.Endpoint = proxy.URL
	b, err := s3.Open(t.Context(), config)
	must(t, err)
	return b
}

// Permit fails for a store that would carry out a late request: because it does not check, or
// because its responses have the date of a proxy whose clock is wrong.
func TestPermitRefused(t *testing.T) {
	t.Parallel()
	ahead := func(by time.Duration) func(*http.Request, answer) {
		return func(_ *http.Request, a answer) {
			a.header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		}
	}
	for name, change := range map[string]func(*http.Request, answer){
		"a minute ahead": ahead(time.Minute),
		"an hour ahead":  ahead(time.Hour),
		"an hour behind": ahead(-time.Hour),
		"no date":        func(_ *http.Request, a answer) { a.header.Set("Date", "today") },
		"a gateway that fails": func(r *http.Request, a answer) {
			if r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/permit") {
				*a.status = http.StatusBadGateway
			}
		},
		"never refuses": func(r *http.Request, a answer) {
			if r.Method == http.MethodDelete {
				*a.status = http.StatusNoContent
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := behind(t, newPrefix(t), change).Permit(t.Context())
			wantCode(t, err, registry.CodeUnavailable)
		})
	}
}

// sleeper is a remover whose collector is suspended just before it deletes.
type sleeper struct {
	storage.Remover
	sleep func()
}

func (s sleeper) Permit(ctx context.Context) (storage.Permit, error) {
	permit, err := s.Remover.Permit(ctx)
	return sleeping{permit, s.sleep}, err
}

type sleeping struct {
	storage.Permit
	sleep func()
}

func (s sleeping) Delete(ctx context.Context, d registry.Digest) error {
	s.sleep()
	return s.Permit.Delete(ctx, d)
}

// A collector suspended between its last look at the catalog and its deletion does not delete
// content that another replica stored and acknowledged in between.
func TestCollectorSleeps(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	clock, path := registrytest.NewClock(), filepath.Join(t.TempDir(), "registry.db")
	replica := func() (*sqlite.DB, *s3.Bucket) {
		db, err := sqlite.Open(t.Context(), path)
		must(t, err)
		t.Cleanup(func() { db.Close() })
		db.Now = clock.Now
		b := open(t, shared, prefix)
		b.SetPermitTime(time.Second)
		return db, b
	}
	db, b := replica()
	d := digest.FromString("wanted again")
	must(t, b.Put(t.Context(), d, 12, strings.NewReader("wanted again")))
	sleep := func() {
		clock.Pass(storage.RemovalTime + time.Second) // the catalog's clock and the store's go on
		for begun, err := b.Time(t.Context()); ; {
			must(t, err)
			if now, err := b.Time(t.Context()); err != nil || now.Sub(begun) > 2*time.Second {
				break
			}
		}
		otherDB, other := replica()
		safe := gc.SafeStore{Garbage: otherDB, Remover: other}
		must(t, safe.Blobs(other).Put(t.Context(), d, 12, strings.NewReader("wanted again")))
		must(t, safe.Refs(otherDB, other).AddBlob(t.Context(), "staging/a", d, 12))
	}
	c, err := gc.New(gc.Config{
		Store: db, Catalog: db, Intents: db, Blobs: b, Remover: sleeper{b, sleep},
		Garbage: db, Clock: db, Owner: registrytest.Owned{}, Lock: db,
		Retention: gc.DefaultRetention(), Alone: true,
	})
	must(t, err)
	did, err := c.Collect(t.Context())
	wantCode(t, err, registry.CodeUnavailable)
	if did.Blobs != 0 {
		t.Errorf("collected %+v, want nothing", did)
	}
	wantBlob(t, b, d, []byte("wanted again"))
}

// A DELETE that the store carries out a second time, after it answered the first, does not delete
// content that was acknowledged in between: its removal stays open until the request has expired.
func TestRepeatedDeletion(t *testing.T) {
	t.Parallel()
	const text = "wanted again"
	d := digest.FromString(text)
	var sent string // the DELETE of d
	b := behind(t, newPrefix(t), func(r *http.Request, _ answer) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, d.Encoded()) {
			sent = r.URL.String()
		}
	})
	const lasts = 2 * time.Second
	b.SetPermitTime(lasts)
	clock := registrytest.NewClock()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	db.Now = clock.Now
	must(t, b.Put(t.Context(), d, int64(len(text)), strings.NewReader(text)))
	c, err := gc.New(gc.Config{
		Store: db, Catalog: db, Intents: db, Blobs: b, Remover: b,
		Garbage: db, Clock: db, Owner: registrytest.Owned{}, Lock: db,
		Retention: gc.DefaultRetention(), Alone: true,
	})
	must(t, err)
	did, err := c.Collect(t.Context())
	must(t, err)
	if did.Blobs != 1 || sent == "" {
		t.Fatalf("collected %+v by the request %q, want the blob", did, sent)
	}
	safe := gc.SafeStore{Garbage: db, Remover: b}
	push := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		if err := safe.Blobs(b).Put(ctx, d, int64(len(text)), strings.NewReader(text)); err != nil {
			return err
		}
		return safe.Refs(db, b).AddBlob(ctx, "staging/a", d, int64(len(text)))
	}
	repeat := func() int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, sent, http.NoBody)
		must(t, err)
		answer, err := http.DefaultClient.Do(request)
		must(t, err)
		must(t, answer.Body.Close())
		return answer.StatusCode
	}
	wantCode(t, push(10*time.Millisecond), registry.CodeUnavailable)
	for begun, err := b.Time(t.Context()); ; {
		must(t, err)
		if now, err := b.Time(t.Context()); err != nil || now.Sub(begun) > lasts {
			break
		}
	}
	clock.Pass(storage.RemovalTime)
	must(t, push(time.Minute))
	if status := repeat(); status != http.StatusForbidden {
		t.Errorf("the repeated DELETE got %d, want %d: it has expired", status, http.StatusForbidden)
	}
	wantBlob(t, b, d, []byte(text))
}

// A take-over waits until no permit of the owner before can delete any more.
func TestOutlast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := new(s3.Bucket)
		b.SetPermitTime(storage.PermitTime)
		began := time.Now()
		must(t, b.Outlast(t.Context()))
		if took, want := time.Since(began), storage.PermitTime+storage.RemovalMargin; took < want {
			t.Errorf("it waits %v, want %v: a deletion could still arrive", took, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Outlast(ctx); err == nil {
			t.Error("it was broken off, and says that no deletion can arrive")
		}
	})
}
