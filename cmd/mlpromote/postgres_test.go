//go:build cgo

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// onPostgres gives each script a database of its own, and one that is another's.
func onPostgres(t *testing.T) setup {
	t.Helper()
	server := pgtest.Shared(t)
	other, urls := server.Database(t), make(map[string]string)
	for _, file := range scriptsOnPostgres() {
		urls["script-"+filepath.Base(file)] = server.Database(t)
	}
	return func(env *testscript.Env, _ string) error {
		url := urls[filepath.Base(env.WorkDir)]
		env.Setenv("MLPROMOTE_DATABASE", url)
		env.Setenv("URL", url)
		env.Setenv("OTHER", other)
		env.Setenv("BARE", strings.Replace(url, ":"+server.Password, "", 1))
		env.Setenv("PASSWORD", server.Password)
		return nil
	}
}

// cmdAge lets two days pass for the collector.
func cmdAge(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 0)
	ts.Check(pgtest.Run(context.Background(), ts.Getenv("MLPROMOTE_DATABASE"),
		"UPDATE manifests SET created = created - interval '2 days', condemned = condemned - interval '2 days'",
		"UPDATE blobs SET created = created - interval '2 days', condemned = condemned - interval '2 days'",
		"UPDATE condemned SET at = at - interval '2 days'"))
}
