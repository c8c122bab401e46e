package oci_test

import (
	"bytes"
	"context"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci"
)

// Per-case figures are copied with their evidence, to any kind of repository.
func TestFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	figures := bytes.Repeat([]byte{0, 1, 2, 255}, 5000)
	with, err := w.store.PutEvidence(t.Context(), staging, evidence.Bundle{Data: bundle("report"), Figures: figures}, w.release.Subjects()[1:2])
	if err != nil {
		t.Fatal(err)
	}
	without, err := w.store.PutEvidence(t.Context(), staging, evidence.Bundle{Data: bundle("report")}, w.release.Subjects()[1:2])
	if err != nil || without[0] == with[0] {
		t.Fatalf("evidence %s without figures and %s with, error %v; want two", without, with, err)
	}
	for name, open := range destinations(t, w) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
				if name == prod {
					return open(), nil
				}
				return oci.Local(w.blobs, w.refs, name), nil
			}, oci.Options{})
			if err := store.Copy(t.Context(), staging, prod, w.release, append(with, without...)); err != nil {
				t.Fatal(err)
			}
			for d, want := range map[registry.Digest][]byte{with[0]: figures, without[0]: nil} {
				got, err := store.Bundle(t.Context(), prod, d)
				if err != nil || !bytes.Equal(got.Figures, want) || !bytes.Equal(got.Data, bundle("report")) {
					t.Errorf("%s has %d bytes of figures, error %v; want %d", d, len(got.Figures), err, len(want))
				}
			}
			read := 0
			for b, err := range store.Evidence(t.Context(), prod, w.release.Subjects()[1].Digest) {
				if err != nil || b.Figures != nil {
					t.Errorf("%s among the evidence: %d bytes of figures, error %v; want it without", b.Digest, len(b.Figures), err)
				}
				read++
			}
			if read != 2 {
				t.Errorf("%d pieces of evidence, want 2", read)
			}
		})
	}
	_, err = w.store.PutEvidence(t.Context(), staging,
		evidence.Bundle{Data: bundle("report"), Figures: make([]byte, evidence.MaxCaseFigures+1)}, w.release.Subjects()[:1])
	wantCode(t, err, registry.CodeInvalid, "per-case figures", "at most")
}
