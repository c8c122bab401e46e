package main

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/storage"
)

// BenchmarkImageForm measures what the image form of an engine costs: the time to store the engine and then its image, the
// bytes that both take on disk, and the rates at which a service sends the engine's blob and the image's layer, in turns.
func BenchmarkImageForm(b *testing.B) {
	s := largeShop(b)
	repository := "staging/" + s.model
	part := storage.Part{Role: artifact.PartImage, Engine: s.engine, Files: []storage.PartFile{{
		File: artifact.File{Path: "model.onnx", Digest: s.fileDigest, Size: s.bytes},
		Open: func() (io.ReadCloser, error) { return os.Open(s.file) },
	}}}
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
	b.ReportMetric(float64(grown-before)/float64(s.bytes), "bytes/engine-byte")
	b.ReportMetric(mib*float64(b.N)/took[0].Seconds(), "blob-MiB/s")
	b.ReportMetric(mib*float64(b.N)/took[1].Seconds(), "layer-MiB/s")
}

// diskUse sums the sizes of files below a folder.
func diskUse(b *testing.B, dir string) (n int64) {
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
