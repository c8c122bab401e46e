package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

func BenchmarkScratch(b *testing.B) {
	s := newShop(b, 1<<10)
	url, _ := s.serve(b)
	host := url[len("http://"):]
	var n int
	var mu sync.Mutex
	one := func() {
		mu.Lock()
		n++
		k := n
		mu.Unlock()
		r, err := remote.NewRepository(fmt.Sprintf("%s/staging/small%d", host, k%8))
		check(b, err)
		r.PlainHTTP = true
		raw := make([]byte, 4096)
		rand.Read(raw)
		d := content.NewDescriptorFromBytes("application/octet-stream", raw)
		check(b, r.Push(b.Context(), d, bytes.NewReader(raw)))
		m, err := oras.PackManifest(b.Context(), r, oras.PackManifestVersion1_1, "application/vnd.x", oras.PackManifestOptions{Layers: []ocispec.Descriptor{d}})
		check(b, err)
		check(b, r.Tag(b.Context(), m, fmt.Sprint("v", k)))
	}
	_ = digest.FromString
	for b.Loop() {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 25 {
					one()
				}
			})
		}
		all.Wait()
	}
}
