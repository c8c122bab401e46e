package registrytest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// d is the digest of a word.
func d(word string) registry.Digest { return digest.FromString(word) }

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode wants an error with a code.
func wantCode(t *testing.T, err error, code registry.Code) {
	t.Helper()
	if got := registry.CodeOf(err); err == nil || got != code {
		t.Errorf("got error %v (%s), want one with code %s", err, got, code)
	}
}

// collect reads a sequence to its end.
func collect[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		must(t, err)
		all = append(all, v)
	}
	return all
}

// wantCanceled wants a sequence to end with the error of its context.
func wantCanceled[T any](t *testing.T, sequence func(context.Context) iter.Seq2[T, error]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range sequence(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v from a canceled context, want context.Canceled", err)
		}
		return
	}
	t.Error("the sequence of a canceled context ended without an error")
}

// cmpStrings orders digests and names by their bytes.
func cmpStrings[S ~string](a, b S) int { return cmp.Compare(a, b) }

// Bundles reads a sequence of evidence to its end, and returns it by the digest of the manifest.
func Bundles(seq iter.Seq2[evidence.Bundle, error]) ([]evidence.Bundle, error) {
	var all []evidence.Bundle
	for b, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b evidence.Bundle) int { return cmp.Compare(a.Digest, b.Digest) })
	return all, nil
}
