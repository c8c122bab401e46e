package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// flip damages the copy of a blob without changing its size.
func (p *place) flip(d registry.Digest) {
	p.t.Helper()
	path := filepath.Join(p.store.Dir, "blobs", string(d.Algorithm()), d.Encoded()[:2], d.Encoded())
	text, err := os.ReadFile(path)
	if err == nil {
		text[len(text)/2] ^= 1
		err = errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, text, 0o600))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// A damaged copy in the backup is found by one of the next runs, or by the next one with
// Verify, and replaced. The snapshot made then can be restored.
func TestMend(t *testing.T) {
	t.Parallel()
	for name, verify := range map[string]bool{"in turn": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.from.Verify = verify
			var pushed []registry.Digest
			for n := range 40 {
				pushed = append(pushed, p.push(fmt.Sprintf("blob %02d", n)))
			}
			p.make()
			for _, d := range []registry.Digest{slices.Min(pushed), pushed[7], slices.Max(pushed)} {
				p.flip(d)
				runs, read := 0, 0
				for found := false; !found; runs++ {
					if runs == 12 {
						t.Fatalf("the damage was not found in %d runs that read %d copies", runs, read)
					}
					_, checked, err := p.store.Make(t.Context(), p.from)
					if err != nil {
						t.Fatal(err)
					}
					read += checked.Blobs
					found = slices.Contains(checked.Repaired, d)
					if verify && (!found || checked.Blobs != 40) || !verify && checked.Blobs > 5 || len(checked.Damaged) > 0 {
						t.Fatalf("a run with Verify %v read %+v; want all 40 with it, at most 5 without", verify, checked)
					}
				}
			}
			s := p.make()
			if err := p.verify(s); err != nil {
				t.Error(err)
			}
			p.restore(s)
		})
	}
}

// Content that is damaged in the backup and lost in the source fails the backup: no snapshot
// is made.
func TestDamagedInBoth(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.from.Verify = true
	d := p.push("one")
	p.make()
	p.flip(d)
	if err := p.blobs.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	_, checked, err := p.store.Make(t.Context(), p.from)
	if !registry.HasCode(err, registry.CodeDigest) || !strings.Contains(err.Error(), string(d)) || !slices.Equal(checked.Damaged, []registry.Digest{d}) {
		t.Errorf("got %v, checked %+v; want CodeDigest with the digest, and %s damaged", err, checked, d)
	}
	if all, err := p.store.List(); err != nil || len(all) != 1 {
		t.Errorf("snapshots are %v, %v; want only the first", all, err)
	}
}

// If only earlier snapshots need a blob that is damaged and that the source no longer has,
// Affected names those snapshots. The new snapshot is complete.
func TestDamagedBefore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.from.Verify = true
	d := p.push("one")
	first := p.make()
	p.flip(d)
	p.collect(d)
	p.push("two")
	second, checked, err := p.store.Make(t.Context(), p.from)
	if err != nil || !slices.Equal(checked.Damaged, []registry.Digest{d}) {
		t.Fatalf("checked %+v, %v; want %s damaged", checked, err, d)
	}
	affected, err := p.store.Affected(checked.Damaged)
	if err != nil || !slices.Equal(affected, []string{first.Name}) {
		t.Errorf("affected are %v, %v; want only %s", affected, err, first.Name)
	}
	if err := p.verify(second); err != nil {
		t.Error(err)
	}
	p.restore(second)
}

// A restore restores all whole blobs. Its error names damaged blobs and the repositories that
// hold them.
func TestRestoreSaysWhatIsDamaged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var damaged []registry.Digest
	for n := range 30 {
		d := p.push(fmt.Sprintf("blob %02d", n))
		if n%2 == 0 {
			damaged = append(damaged, d)
		}
	}
	s := p.make()
	for _, d := range damaged {
		p.flip(d)
	}
	dir := t.TempDir()
	for verb, err := range map[string]error{"restore": p.store.Restore(t.Context(), s, into(dir)), "verify": p.verify(s)} {
		if !registry.HasCode(err, registry.CodeDigest) {
			t.Fatalf("%s: %v, want CodeDigest", verb, err)
		}
		for _, want := range []string{"15 of 30 blobs", string(slices.Min(damaged)), "held by staging/m", "and 5 more"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", verb, err, want)
			}
		}
	}
	restored := into(dir)
	blobs, err := restored.OpenBlobs(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	whole := digest.FromString("blob 01")
	blob, _, err := blobs.Open(t.Context(), whole)
	if err != nil {
		t.Fatalf("a whole blob was not restored: %v", err)
	}
	if err := blob.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "registry.db")); err == nil {
		t.Error("the catalog was restored, though content is missing")
	}
}
