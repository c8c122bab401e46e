package datadir_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestContentMarks(t *testing.T) {
	t.Parallel()
	registrytest.TestContentMarks(t, func(t *testing.T) func() storage.ContentMarks {
		path := t.TempDir()
		return func() storage.ContentMarks { return datadir.Dir{Path: path} }
	})
}
