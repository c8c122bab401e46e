//go:build cgo

package main

import (
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
