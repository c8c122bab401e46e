package main

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/snapshots"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/scrub"
	"mlpromote.dev/mlpromote/registry/storage"
)

// BenchmarkImageForm measures what the image form of an engine costs: the time to store the engine and then its image, the
// bytes that both take on disk before and after a collection, and the rates at which a service sends the engine's blob and the
// image's layer, in turns: first the stored layer, then the composed one.
func BenchmarkImageForm(b *testing.B) {
	s := largeShop(b)
	repository := "staging/" + s.model
	part := s.image()
	blobs := filepath.Join(s.app.Data, "blobs")
	before := diskUse(b, blobs)
	began := time.Now()
	image, err := s.Store.PutPart(b.Context(), repository, part)
	check(b, err)
	store := time.Since(began)
	began = time.Now()
	check(b, imageform.Check(b.Context(), image.Digest, imageform.Of(s.engine, []artifact.File{part.Files[0].File}),
		func(artifact.File) (io.ReadCloser, error) { return os.Open(s.file) }))
	recompute := time.Since(began)
	grown := diskUse(b, blobs)
	fetched, err := s.Store.Fetch(b.Context(), repository, image.Digest, "")
	check(b, err)

	service, _ := s.serve(b)
	paths := []string{"/v2/" + repository + "/blobs/" + string(s.fileDigest), "/v2/" + repository + "/blobs/" + string(fetched.Files[0].Digest)}
	var took [2]time.Duration
	download := func(i int) time.Duration {
		began := time.Now()
		r, err := http.Get(service + paths[i])
		check(b, err)
		_, err = io.Copy(io.Discard, r.Body)
		check(b, err)
		check(b, r.Body.Close())
		if r.StatusCode != http.StatusOK {
			b.Fatal(r.Status)
		}
		return time.Since(began)
	}
	const rounds = 5
	var stored [2]time.Duration
	for round := range rounds + 1 { // the first round hashes
		for i := range paths {
			if t := download(i); round > 0 {
				stored[i] += t
			}
		}
	}
	began = time.Now()
	did := s.collect(b)
	collect := time.Since(began)
	if did.Composed != 1 {
		b.Fatalf("collected %+v, want the own bytes of the layer", did)
	}
	composed := diskUse(b, blobs)
	for i := range paths {
		download(i) // the first time hashes
	}
	for b.Loop() {
		for i := range paths {
			took[i] += download(i)
		}
	}
	mib := float64(s.bytes) / (1 << 20)
	b.ReportMetric(float64(store)/1e6, "store-ms")
	b.ReportMetric(float64(recompute)/1e6, "recompute-ms")
	b.ReportMetric(float64(collect)/1e6, "collect-ms")
	b.ReportMetric(float64(grown-before)/float64(s.bytes), "bytes/engine-byte")
	b.ReportMetric(float64(composed-before)/float64(s.bytes), "composed-bytes/engine-byte")
	b.ReportMetric(mib*rounds/stored[0].Seconds(), "blob-1-MiB/s")
	b.ReportMetric(mib*rounds/stored[1].Seconds(), "stored-layer-MiB/s")
	b.ReportMetric(mib*float64(b.N)/took[0].Seconds(), "blob-2-MiB/s")
	b.ReportMetric(mib*float64(b.N)/took[1].Seconds(), "composed-layer-MiB/s")
}

// diskUse sums the sizes of files below a folder.
func diskUse(b testing.TB, dir string) (n int64) {
	b.Helper()
	check(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		n += info.Size()
		return err
	}))
	return n
}

// image is the image form of the engine.
func (s *shop) image() storage.Part {
	return storage.Part{Role: artifact.PartImage, Engine: s.engine, Files: []storage.PartFile{{
		File: artifact.File{Path: "model.onnx", Digest: s.fileDigest, Size: s.bytes},
		Open: func() (io.ReadCloser, error) { return os.Open(s.file) },
	}}}
}

// collect runs a collector that has the data directory to itself.
func (s *shop) collect(b testing.TB) gc.Collected {
	b.Helper()
	collector, err := gc.New(wiring.CollectorConfig(s.Local, s.Envs, gc.DefaultRetention(), true))
	check(b, err)
	did, err := collector.Collect(b.Context())
	check(b, err)
	return did
}

// putImage stores the image form of the engine, and returns its layer too.
func (s *shop) putImage(b testing.TB) (storage.PartRef, artifact.File) {
	b.Helper()
	image, err := s.Store.PutPart(b.Context(), "staging/"+s.model, s.image())
	check(b, err)
	fetched, err := s.Store.Fetch(b.Context(), "staging/"+s.model, image.Digest, "")
	check(b, err)
	return image, fetched.Files[0]
}

// The layer of a large engine is stored once, and pulled, stored again and verified as any other.
func TestLargeLayer(t *testing.T) {
	t.Parallel()
	s := newShop(t, benchBytes)
	repository, blobs := "staging/"+s.model, filepath.Join(s.app.Data, "blobs")
	before := diskUse(t, blobs)
	image, layer := s.putImage(t)
	if did := s.collect(t); did.Composed != 1 || did.ComposedBytes != layer.Size || did.Blobs != 0 {
		t.Errorf("collected %+v, want the own bytes of the layer of %d bytes", did, layer.Size)
	}
	again, err := s.Store.PutPart(t.Context(), "staging/other", s.image())
	check(t, err)
	if grown := diskUse(t, blobs) - before; again != image || grown > 64<<10 {
		t.Errorf("the image takes %d bytes on disk, want less than 64 KiB; stored again it is %s, want %s", grown, again.Digest, image.Digest)
	}
	service, _ := s.serve(t)
	for _, repository := range []string{repository, "staging/other"} {
		r, err := http.Get(service + "/v2/" + repository + "/blobs/" + string(layer.Digest))
		check(t, err)
		got, err := digest.FromReader(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil || got != layer.Digest || r.ContentLength != layer.Size {
			t.Errorf("a pull from %s: %s with %d bytes of digest %s, error %v", repository, r.Status, r.ContentLength, got, err)
		}
	}
	reader, err := scrub.New(wiring.ScrubConfig(s.Local))
	check(t, err)
	if did, err := reader.Pass(t.Context()); err != nil || did.Damaged != 0 || did.Bytes < 2*s.bytes {
		t.Errorf("scrubbed %+v, error %v, want the engine and its layer without damage", did, err)
	}
}

// Backups from before and after a layer lost its own bytes are restored: into a directory, and beside a bucket that is only read.
func TestRestoreLargeLayer(t *testing.T) { //nolint:paralleltest // the credentials of the bucket are in the environment
	for name, store := range map[string]func() string{
		"directory": func() string { return "" },
		"bucket":    func() string { return registrytest.StartS3Server(t).URL("models") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShopIn(t, store(), benchBytes)
			_, layer := s.putImage(t)
			dest := filepath.Join(t.TempDir(), "backup")
			job := snapshots.Job{At: s.app.At(), UI: s.app.UI}
			first, err := job.Backup(t.Context(), dest, 0, false)
			check(t, err)
			if did := s.collect(t); did.Composed != 1 {
				t.Fatalf("collected %+v, want the own bytes of the layer", did)
			}
			second, err := job.Backup(t.Context(), dest, 0, true)
			check(t, err)
			for _, snapshot := range []string{first.Name, second.Name} {
				job.At.Data = filepath.Join(t.TempDir(), "restored")
				_, err := job.Restore(t.Context(), dest, snapshot, false, snapshots.Since{Accepted: true})
				check(t, err)
				i, err := job.At.OpenDirectory(t.Context())
				check(t, err)
				blob, size, err := i.Local.Blobs.Open(t.Context(), layer.Digest)
				check(t, err)
				got, err := digest.FromReader(blob)
				if err := errors.Join(err, blob.Close(), i.Close()); err != nil || got != layer.Digest || size != layer.Size {
					t.Errorf("snapshot %s has a layer of %d bytes with digest %s, error %v, want %s", snapshot, size, got, err, layer.Digest)
				}
			}
		})
	}
}
