package driverproc_test

import (
	"testing"
	"testing/fstest"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/registry"
)

// The digest of code in Go changes with each of its parts, and not with tests and other files.
func TestGoCodeDigest(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	digest := func(libraries string, first, second fstest.MapFS) registry.Digest {
		t.Helper()
		d, err := driverproc.GoCodeDigest(libraries, first, second)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first, second := fstest.MapFS{"a.go": file("package a")}, fstest.MapFS{"b.go": file("package b")}
	want := digest("lib v1", first, second)
	same := fstest.MapFS{"b.go": file("package b"), "b_test.go": file("package b_test"), "testdata/x.json": file("{}")}
	if got := digest("lib v1", first, same); got != want {
		t.Errorf("tests and data change the digest to %s", got)
	}
	for name, other := range map[string]registry.Digest{
		"library": digest("lib v2", first, second),
		"name":    digest("lib v1", fstest.MapFS{"c.go": file("package a")}, second),
		"text":    digest("lib v1", first, fstest.MapFS{"b.go": file("package b // other")}),
		"file":    digest("lib v1", first, fstest.MapFS{"b.go": file("package b"), "c.go": file("package b")}),
		"folder":  digest("lib v1", first, fstest.MapFS{"b.go": file("package b"), "in/c.go": file("package c")}),
	} {
		if other == want {
			t.Errorf("the digest is the same with another %s", name)
		}
	}
}
