//go:build cgo

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// TestScriptsOnPostgres runs scripts on data directories whose catalog is in PostgreSQL.
// Left out are those that go on from directories which other scripts share: these have a
// catalog of their own.
func TestScriptsOnPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	files := []string{"script/main_job", "script/init", "script/refuse_broken_calibration", "postgres/database", "postgres/gc", "postgres/move"}
	urls := make(map[string]string)
	for _, file := range files {
		urls["script-"+filepath.Base(file)] = server.Database(t)
	}
	other := server.Database(t)
	p := scripts(t, nil)
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		url := urls[filepath.Base(env.WorkDir)]
		err := setup(env)
		env.Setenv("MLPROMOTE_DATABASE", url)
		env.Setenv("URL", url)
		env.Setenv("OTHER", other)
		env.Setenv("BARE", strings.Replace(url, ":"+server.Password, "", 1))
		env.Setenv("PASSWORD", server.Password)
		return err
	}
	for _, file := range files {
		p.Files = append(p.Files, filepath.Join("testdata", file+".txtar"))
	}
	testscript.Run(t, p)
}

// TestCrashReplicas ends one of two replicas with SIGKILL, each in turn, while a client
// works with it and others with its neighbour. The neighbour serves them all along, knows
// all that was acknowledged, and lets the same verb, run again, finish.
func TestCrashReplicas(t *testing.T) {
	t.Parallel()
	newCrashServed(t, 2, pgtest.New(t).URL("postgres")).rounds(replicaKills)
}

// replicaKills is enough for each verb on each replica.
const replicaKills = 10

// neighbours push to the replica that stands by, and read from it, until the function is
// called that this gives.
func (c *crashServed) neighbours() (stop func()) {
	if c.standby == nil {
		return func() {}
	}
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(c.t.Context())
	for n := range 2 {
		done.Go(func() {
			for {
				answers, err := c.visit(context.WithoutCancel(ctx), c.standby.url, n)
				if err != nil {
					c.t.Errorf("a neighbour, after %d answers: %v", answers, err)
				}
				if ctx.Err() != nil || err != nil {
					return
				}
			}
		})
	}
	return func() {
		cancel()
		done.Wait()
	}
}

// visit asks a replica for heads, pushes a blob and looks for it. It gives how many answers
// it got.
func (c *crashServed) visit(ctx context.Context, url string, n int) (answers int, err error) {
	blob := rand.Text()
	path := fmt.Sprintf("%s/v2/staging/neighbour%d/blobs/", url, n)
	for _, ask := range []struct{ method, url, body string }{
		{http.MethodGet, url + "/api/v1/heads?environment=prod", ""},
		{http.MethodPost, path + "uploads/?digest=" + digest.FromString(blob).String(), blob},
		{http.MethodGet, path + digest.FromString(blob).String(), ""},
	} {
		request, err := http.NewRequestWithContext(ctx, ask.method, ask.url, strings.NewReader(ask.body))
		if err != nil {
			return answers, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return answers, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode/100 != 2 {
			return answers, fmt.Errorf("%s %s: %s (%w)", ask.method, ask.url, response.Status, err)
		}
		answers++
	}
	return answers, nil
}
