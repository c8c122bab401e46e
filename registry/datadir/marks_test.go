package datadir_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

func TestContentMarks(t *testing.T) {
	t.Parallel()
	registrytest.TestContentMarks(t, func(t *testing.T) func() registry.ContentMarks {
		path := t.TempDir()
		return func() registry.ContentMarks { return datadir.Dir{Path: path} }
	})
}
